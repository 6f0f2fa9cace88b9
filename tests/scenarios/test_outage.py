"""The store is away for a while: waited out, told once, and nothing is lost."""

from __future__ import annotations

from kit import EVERYWHERE, KINDS, Stage

LOOPS = ["fetching jobs", "settling jobs", "extending leases"]


@EVERYWHERE
def test_a_store_that_is_locked_for_long_is_waited_out_and_told_once_by_each_loop(stage: Stage) -> None:
    """F36, F21. Locked for longer than a worker waits in one go, and for less than a lease."""
    short = stage.url.replace("busy_timeout=5", "busy_timeout=0.1")
    stage.env["HEADRACE_URL"] = short if short != stage.url else f"{stage.url}?patience=0.1"
    for kind in KINDS:
        stage.enqueue(kind, "hold", f"{kind} holds")
        stage.enqueue(kind, "sleep:1", f"{kind} ends meanwhile")
    worker = stage.worker(workers=10, lease=12.0)
    stage.started(6)
    stage.enqueue("in loop", "return", "falls due meanwhile", delay=2)
    with stage.locked():
        for loop in LOOPS:
            worker.says(f"{loop} failed")
    stage.let_go()
    stats = stage.until_done(7)
    for loop in LOOPS:
        worker.says(f"{loop} works again")
        assert worker.output.count(f"{loop} failed") == 1
        assert worker.output.count(f"{loop} works again") == 1
    assert len(stage.lines("start")) == len(stage.lines("end")) == 7
    assert (stats.expired_leases, stats.dead_total) == (0, 0)
    assert "Traceback" not in worker.output
    worker.process.terminate()
    assert worker.ends() == 0
