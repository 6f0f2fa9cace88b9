"""A worker stands still for longer than its leases, as a paused machine does, and then goes on."""

from __future__ import annotations

import os
import signal

from kit import EACH_KIND, Stage


@EACH_KIND
def test_a_worker_that_wakes_up_after_its_lease_settles_nothing_and_goes_on_working(kind: str, stage: Stage) -> None:
    """F02. Another worker has finished the job meanwhile."""
    stage.enqueue(kind, "hold", "job", max_attempts=2)
    frozen = stage.worker(lease=0.5)
    (start,) = stage.started(1)
    everyone = {frozen.pid, start.pid}
    with stage.locked():  # so that it does not stop with the file's lock in its hands
        for pid in everyone:
            os.kill(pid, signal.SIGSTOP)
    other = stage.worker(lease=0.5)
    stage.started(2)
    stage.let_go()
    assert stage.until_done(1).expired_leases == 1
    other.process.terminate()
    assert other.ends() == 0

    for pid in everyone:
        os.kill(pid, signal.SIGCONT)
    stage.enqueue(kind, "return", "next")
    stats = stage.until_done(2)
    assert (stats.acked, stats.dead_total, stats.retried) == (2, 0, 0)
    assert [line.attempt for line in stage.lines("start", "job")] == [1, 2]
    assert [line.attempt for line in stage.lines("start", "next")] == [1]
    frozen.process.terminate()
    assert frozen.ends() == 0
    assert "Traceback" not in frozen.output
