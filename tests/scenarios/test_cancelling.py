"""Jobs that are cancelled from another process, while they wait and while they run."""

from __future__ import annotations

import random

from kit import EACH_KIND, EVERYWHERE, Stage


@EACH_KIND
def test_a_running_job_that_is_cancelled_is_told_and_never_retried(kind: str, stage: Stage) -> None:
    """F09."""
    stage.enqueue(kind, "until told", "unwanted")
    stage.enqueue(kind, "hold", "wanted")
    worker = stage.worker(lease=1.0)
    stage.started(2)
    assert "told at its next heartbeat" in stage.command("cancel", "unwanted")
    stage.wait_for("told", 1, "unwanted")
    stage.let_go()
    stats = stage.until_done(1)
    assert (stats.cancelled, stats.acked, stats.retried, stats.dead_total) == (1, 1, 0, 0)
    assert len(stage.lines("start", "unwanted")) == 1
    worker.process.terminate()
    assert worker.ends() == 0


@EVERYWHERE
def test_a_job_is_either_cancelled_before_its_start_or_started_never_both(stage: Stage) -> None:
    """F09. A worker takes 400 jobs while they are cancelled in random order."""
    ids = [f"job-{number:03}" for number in range(400)]
    stage.enqueue("in loop", "return", *ids)
    worker = stage.worker(workers=4)
    stage.started(1)
    order = random.Random(9).sample(ids, len(ids))
    cancelled = {id for id in order if stage.queue.cancel(id)}
    stats = stage.until_done(0)
    started = [line.id for line in stage.lines("start")]
    assert len(started) == len(set(started))
    assert cancelled.isdisjoint(started)
    assert cancelled | set(started) == set(ids)
    assert stats.acked + stats.cancelled == len(ids)
    assert stats.retried == 0
    worker.process.terminate()
    assert worker.ends() == 0
