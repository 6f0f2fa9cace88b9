"""Ending a worker while jobs run and others wait: nothing is lost, delayed or left behind."""

from __future__ import annotations

import os
import signal

import pytest
from kit import EVERYWHERE, KINDS, Stage, alive

from headrace.job import State

IDS = [f"job-{number:02}" for number in range(20)]


@pytest.mark.parametrize("kind", KINDS)
def test_what_waits_goes_to_the_next_worker_while_the_first_one_drains(kind: str, stage: Stage) -> None:
    """F14. The lease is a minute, so nobody could have waited for its end."""
    stage.enqueue(kind, "hold", *IDS[:2])
    stage.enqueue("in loop", "return", *IDS[2:])
    first = stage.worker(workers=2)
    stage.started(2)
    first.process.terminate()
    first.says("a second signal ends at once")
    assert (stage.queue.stats().inflight, stage.queue.stats().ready) == (2, 18)
    second = stage.worker(workers=1)
    stage.until(lambda: stage.queue.stats().acked == 18, "the others are done")
    assert first.process.poll() is None
    assert stage.queue.stats().inflight == 2
    stage.let_go()
    assert first.ends() == 0
    stats = stage.until_done(20)
    assert [line.id for line in stage.lines("start")[2:]] == IDS[2:]
    assert {line.attempt for line in stage.lines("start")} == {1}
    assert (stats.dead_total, stats.retried, stats.expired_leases) == (0, 0, 0)
    second.process.terminate()
    assert second.ends() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_twice_at_a_terminal_ends_at_once_and_loses_no_job(kind: str, stage: Stage) -> None:
    """F35."""
    stage.enqueue(kind, "hold", "a", "b", max_attempts=1)
    worker = stage.worker(lease=1.0, terminal=True)
    stage.started(2)
    worker.press_ctrl_c()
    worker.says("a second signal ends at once")
    assert len(stage.lines("start")) == 2
    worker.press_ctrl_c()
    assert worker.ends() == 128 + signal.SIGINT
    assert "Traceback" not in worker.output
    stats = stage.queue.stats()
    assert (stats.dead_total, stats.acked) == (0, 0)
    # Given back, or left to their leases.
    assert stats.ready + stats.inflight == 2
    stage.until(lambda: not any(alive(line.pid) for line in stage.lines("start")), "no child is left")


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_drain_that_takes_too_long_gives_back_what_runs(kind: str, stage: Stage) -> None:
    """F35."""
    stage.enqueue(kind, "hold", "a", "b", max_attempts=1)
    worker = stage.worker("--drain", "0.2")
    stage.started(2)
    worker.process.terminate()
    assert worker.ends() == 128 + signal.SIGTERM
    assert "2 given back" in worker.output
    for id in ("a", "b"):
        job = stage.queue.find(id)
        assert job is not None
        assert (job.state, job.attempt) == (State.READY, 0)


def test_a_signal_to_every_single_process_lets_running_handlers_finish(stage: Stage) -> None:
    """F35. An init system ends a service by signalling all its processes, children that lead a group of their
    own included."""
    stage.enqueue("in process", "hold", "a", "b", max_attempts=1)
    worker = stage.worker()
    pids = {line.pid for line in stage.started(2)}
    for pid in (*pids, worker.pid):
        os.kill(pid, signal.SIGTERM)
    worker.says("a second signal ends at once")
    stage.let_go()
    assert worker.ends() == 0
    assert stage.queue.stats().acked == 2
    assert len(stage.lines("end")) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_handler_that_exits_ends_its_attempt_and_not_its_worker(kind: str, stage: Stage) -> None:
    """F16."""
    for act in ("exit:0", "exit:3", "interrupt"):
        stage.enqueue(kind, act, act, max_attempts=1)
    worker = stage.worker()
    stage.until(lambda: stage.queue.stats().dead == 3, "all three are dead")
    stage.enqueue(kind, "return", *IDS[:5])
    stage.until_done(5)
    errors = {job.id: job.last_error or "" for job in stage.queue.dead(100)}
    assert "SystemExit" in errors["exit:0"]
    assert "SystemExit" in errors["exit:3"]
    assert "KeyboardInterrupt" in errors["interrupt"]
    worker.process.terminate()
    assert worker.ends() == 0


@pytest.mark.parametrize("kind", ["limited in loop", "limited in thread", "limited in process"])
def test_handlers_that_ignore_their_limit_keep_neither_the_others_nor_the_worker_from_going_on(
    kind: str, stage: Stage
) -> None:
    """F15. More hung jobs than slots, and they hang for longer than the test may take."""
    hung = [f"hung-{number}" for number in range(6)]
    acts = ["stubborn:60"] * 6 if kind == "limited in loop" else ["stubborn:60", "deadlock:60", "sleep:60"] * 2
    for id, act in zip(hung, acts, strict=True):
        stage.enqueue(kind, act, id, max_attempts=1)
    stage.enqueue(kind.removeprefix("limited "), "return", *IDS)
    worker = stage.worker(workers=3, lease=1.0)
    stats = stage.until_done(20)
    assert (stats.dead_total, stats.expired_leases) == (6, 0)
    assert {job.last_error for job in stage.queue.dead(100)} == {"timed out after 0.3 s"}
    assert all(len(stage.lines("start", id)) == 1 for id in hung)
    worker.process.terminate()
    assert worker.ends() == 0


@EVERYWHERE
def test_workers_that_end_amid_a_stream_of_quick_jobs_leave_no_lease_and_cost_no_attempt(stage: Stage) -> None:
    """F14, F12. Each is told to end at an arbitrary moment, mostly while it fetches or settles."""
    for kind in ("in loop", "in thread"):
        stage.enqueue(kind, "return", *(f"{kind} {number}" for number in range(400)))
    generations = 0
    while (started := len(stage.lines("start"))) < 700:
        worker = stage.worker(workers=4)
        stage.started(started + 50)
        worker.process.terminate()
        assert worker.ends() == 0
        assert stage.queue.stats().inflight == 0
        generations += 1
    assert generations > 1
    last = stage.worker(workers=4)
    last.says("running")  # the one before it may have left nothing
    stats = stage.until_done(800)
    last.process.terminate()
    assert last.ends() == 0
    assert len(stage.lines("start")) == len(stage.lines("end")) == 800
    assert {line.attempt for line in stage.lines("start")} == {1}
    assert (stats.expired_leases, stats.retried, stats.dead_total) == (0, 0, 0)
