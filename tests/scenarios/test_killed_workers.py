"""A worker dies hard: what it ran is run again when its leases are over, and what it did not run never suffers."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from kit import EACH_KIND, Stage, alive

from headrace.rules import EXPIRED

IDS = [f"job-{number:02}" for number in range(20)]


@EACH_KIND
def test_what_a_killed_worker_ran_starts_once_more_and_only_after_its_lease(kind: str, stage: Stage) -> None:
    """F01."""
    stage.enqueue(kind, "hold", *IDS)
    first = stage.worker(workers=4, lease=1.5)
    starts = stage.started(4)
    held = {line.id for line in starts}
    first.kill()
    stage.until(lambda: not any(alive(line.pid) for line in starts), "no child outlives its worker")
    ends = {id: lease_end(stage, id) for id in held}
    stage.let_go()
    second = stage.worker(workers=4, lease=1.5)
    stats = stage.until_done(20)
    second.process.terminate()
    assert second.ends() == 0

    assert len(held) == 4
    for id in IDS:
        starts = stage.lines("start", id)
        assert [line.attempt for line in starts] == ([1, 2] if id in held else [1])
    assert len(stage.lines("end")) == 20
    for id, end in ends.items():
        again = stage.lines("start", id)[1]
        assert again.last_error == EXPIRED
        assert end - 0.01 <= again.at < end + 5
    assert (stats.dead, stats.dead_total, stats.expired_leases, stats.retried) == (0, 0, 4, 0)


def lease_end(stage: Stage, id: str) -> float:
    """When its lease is over, by the monotonic clock."""
    job = stage.queue.find(id)
    assert job is not None
    assert job.lease_until is not None
    return time.monotonic() + (job.lease_until - datetime.now(UTC)).total_seconds()
