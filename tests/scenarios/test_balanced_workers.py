"""The failures that a fixed pool is tested against, met by pools that grow and shrink meanwhile."""

from __future__ import annotations

import pytest
from kit import KINDS, Stage

IDS = [f"job-{number:02}" for number in range(20)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_blocked_loop_costs_a_balanced_pool_no_lease_and_it_goes_on_balancing(kind: str, stage: Stage) -> None:
    """F13. Nobody calibrates while the loop is blocked for many leases; the neighbours keep their jobs, and so they
    do beside another worker that would take them."""
    stage.enqueue(kind, "hold", "a", "b", "c")
    busy = stage.balanced(4, lease=1.0)
    stage.started(3)  # it has grown to three
    stage.enqueue("in loop", "block:2.5", "blocker")
    stage.started(1, "blocker")
    idle = stage.balanced(4, lease=1.0)
    idle.says("running")
    busy.says("by scenario_app:in_loop (job 'blocker')")
    busy.says("goes on after having been blocked")
    assert len(stage.lines("start")) == 4
    idle.process.terminate()
    assert idle.ends() == 0

    stage.enqueue(kind, "hold", *IDS[:4])  # three are busy, and there may be four
    stage.started(5)
    stage.let_go()
    stats = stage.until_done(8)
    assert len(stage.lines("start")) == len(stage.lines("end")) == 8
    assert (stats.expired_leases, stats.ack_too_late, stats.retried) == (0, 0, 0)
    busy.process.terminate()
    assert busy.ends() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_waits_for_a_balanced_worker_goes_to_the_next_while_it_drains(kind: str, stage: Stage) -> None:
    """F14. The lease is a minute, so nobody could have waited for its end."""
    stage.enqueue(kind, "hold", *IDS[:2])
    stage.enqueue("in loop", "return", *IDS[2:])
    first = stage.balanced(2)
    stage.started(2)
    first.process.terminate()
    first.says("a second signal ends at once")
    assert (stage.queue.stats().inflight, stage.queue.stats().ready) == (2, 18)
    second = stage.balanced(4)
    stage.until(lambda: stage.queue.stats().acked == 18, "the others are done")
    assert first.process.poll() is None
    assert stage.queue.stats().inflight == 2
    stage.let_go()
    assert first.ends() == 0
    stats = stage.until_done(20)
    assert len(stage.lines("start")) == 20
    assert {line.attempt for line in stage.lines("start")} == {1}
    assert (stats.dead_total, stats.retried, stats.expired_leases) == (0, 0, 0)
    second.process.terminate()
    assert second.ends() == 0


def test_a_balanced_pool_starts_its_processes_while_others_hold_locks_and_connections(stage: Stage) -> None:
    """F18. Children start at any moment here, not only at the beginning; some fork, all enqueue."""
    count = 0
    for act in ("follow up", "fork"):
        for kind in KINDS:
            ids = [f"{kind} {act} {number}" for number in range(10)]
            stage.enqueue(kind, act, *ids)
            count += len(ids)
    worker = stage.balanced(6, lease=2.0)
    stats = stage.until_done(2 * count)
    starts = [line.id for line in stage.lines("start")]
    assert len(starts) == len(set(starts)) == 2 * count
    assert not [line for line in stage.ledger if line.event.startswith("failed")]
    assert (stats.enqueued, stats.retried, stats.expired_leases, stats.dead_total) == (2 * count, 0, 0, 0)
    worker.process.terminate()
    assert worker.ends() == 0
