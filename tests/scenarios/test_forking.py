"""Handlers that enqueue from wherever they run, children of their own included."""

from __future__ import annotations

from kit import EVERYWHERE, KINDS, Stage


@EVERYWHERE
def test_a_handler_enqueues_through_its_apps_queue_from_whatever_process_it_runs_in(stage: Stage) -> None:
    """F18. Half of the jobs fork; the parent's queue and the child's both go on working."""
    count = 0
    for kind in KINDS:
        for act in ("follow up", "fork"):
            ids = [f"{kind} {act} {number}" for number in range(10)]
            stage.enqueue(kind, act, *ids)
            count += len(ids)
    worker = stage.worker(workers=4, lease=2.0)
    stats = stage.until_done(2 * count)
    starts = [line.id for line in stage.lines("start")]
    assert len(starts) == len(set(starts)) == 2 * count
    assert {id for id in starts if not id.endswith("-next")} == {id.removesuffix("-next") for id in starts}
    assert (stats.enqueued, stats.retried, stats.expired_leases, stats.dead_total) == (2 * count, 0, 0, 0)
    worker.process.terminate()
    assert worker.ends() == 0
