"""Handlers that run for many leases on a healthy worker, beside another that has nothing to do."""

from __future__ import annotations

import pytest
from kit import EVERYWHERE, KINDS, Stage, Worker


@EVERYWHERE
def test_fifty_jobs_that_last_many_leases_start_once_each_beside_an_idle_worker(stage: Stage) -> None:
    """F03. Leases of 1 s, 3 s of work."""
    stage.enqueue("in loop", "sleep:3", *(f"loop-{number}" for number in range(24)))
    stage.enqueue("in thread", "sleep:3", *(f"thread-{number}" for number in range(23)))
    stage.enqueue("in process", "sleep:3", *(f"process-{number}" for number in range(3)))
    busy = stage.worker(workers=50, lease=1.0)
    stage.started(50)
    idle = stage.worker(workers=50, lease=1.0)
    idle.says("running")
    stats = stage.until_done(50)
    assert len(stage.lines("start")) == len(stage.lines("end")) == 50
    assert (stats.expired_leases, stats.ack_too_late) == (0, 0)
    end(busy, idle)


@pytest.mark.parametrize("kind", KINDS)
def test_a_handler_that_blocks_everything_around_it_costs_its_neighbours_nothing(kind: str, stage: Stage) -> None:
    """F13. An async handler blocks the loop for many leases; neighbours of each kind keep their jobs."""
    stage.enqueue(kind, "sleep:2", "a", "b", "c")
    busy = stage.worker(workers=4, lease=1.0)
    stage.started(3)
    stage.enqueue("in loop", "block:2.5", "blocker")
    stage.started(1, "blocker")
    idle = stage.worker(workers=4, lease=1.0)
    idle.says("running")
    stats = stage.until_done(4)
    assert len(stage.lines("start")) == 4
    assert (stats.expired_leases, stats.ack_too_late) == (0, 0)
    busy.says("by scenario_app:in_loop (job 'blocker')")
    busy.says("goes on after having been blocked")

    stage.enqueue("in loop", "return", *(f"later-{number}" for number in range(4)))
    stage.until_done(8)
    end(busy, idle)
    assert "blocked" not in idle.output


def end(*workers: Worker) -> None:
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        assert worker.ends() == 0
