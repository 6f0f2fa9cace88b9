"""A job that takes its process down, again and again, and a supervisor that starts the worker anew each time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest
from kit import Stage, Worker

from headrace.rules import EXPIRED

LEASE = 0.5
HARMLESS = [f"harmless-{number:02}" for number in range(50)]


@pytest.mark.parametrize(
    ("kind", "act", "attempts", "stage"),
    [
        ("in thread", "kill", 3, "sqlite"),
        ("in loop", "_exit", 3, "sqlite"),
        ("in loop", "kill", 1, "sqlite"),
        ("in thread", "_exit", 1, "sqlite"),
        ("in loop", "kill", 3, "postgres"),
    ],
    indirect=["stage"],
)
def test_a_job_that_kills_its_worker_runs_out_of_attempts_and_the_others_finish(
    kind: str, act: str, attempts: int, stage: Stage
) -> None:
    """F04."""
    stage.enqueue(kind, act, "poison", max_attempts=attempts)
    stage.enqueue("in loop", "return", *HARMLESS[:25])
    stage.enqueue("in thread", "return", *HARMLESS[25:])
    with supervised(stage) as supervisor:
        stats = stage.until_done(50)
    starts = stage.lines("start", "poison")
    assert [line.attempt for line in starts] == list(range(1, attempts + 1))
    # From claim to claim it is a lease; from start to start a little may be missing.
    assert all(after.at - before.at > LEASE / 2 for before, after in pairwise(starts))
    (dead,) = stage.queue.dead(100)
    assert (dead.id, dead.attempt, dead.last_error) == ("poison", attempts, EXPIRED)
    assert {line.id for line in stage.lines("end")} == set(HARMLESS)
    assert (stats.acked, stats.dead_total) == (50, 1)
    assert supervisor.deaths == attempts


def test_a_process_handler_that_dies_takes_only_its_child_along(stage: Stage) -> None:
    """F04, F16."""
    stage.enqueue("in process", "hold", "left", "right")
    worker = stage.worker(workers=4, lease=LEASE)
    stage.started(2)
    stage.enqueue("in process", "kill", "killed", max_attempts=3)
    stage.enqueue("in process", "_exit", "gone", max_attempts=1)
    stage.until(lambda: stage.queue.stats().dead == 2, "both are dead")
    stage.let_go()
    stats = stage.until_done(2)
    assert [line.attempt for line in stage.lines("start", "killed")] == [1, 2, 3]
    assert [line.attempt for line in stage.lines("start", "gone")] == [1]
    assert len(stage.lines("start", "left")) == len(stage.lines("start", "right")) == 1
    reasons = {job.id: job.last_error or "" for job in stage.queue.dead(100)}
    assert "killed by SIGKILL" in reasons["killed"]
    assert "exit code 0" in reasons["gone"]
    assert stats.expired_leases == 0
    worker.process.terminate()
    assert worker.ends() == 0


class Supervisor:
    """Starts a worker whenever there is none, as an init system does."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._stopped = False
        self._worker = self._start()
        self._thread = threading.Thread(target=self._work)
        self.deaths = 0
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        while self._thread.is_alive():  # it may be about to start another
            self._worker.process.terminate()
            self._thread.join(0.1)

    def _start(self) -> Worker:
        return self._stage.worker(workers=4, lease=LEASE)

    def _work(self) -> None:
        while True:
            self._worker.process.wait()
            if self._stopped:
                return
            self.deaths += 1
            self._worker = self._start()


@contextmanager
def supervised(stage: Stage) -> Iterator[Supervisor]:
    supervisor = Supervisor(stage)
    try:
        yield supervisor
    finally:
        supervisor.stop()
