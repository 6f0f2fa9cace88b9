"""F01, F05: kill -9 at any moment. What was accepted is done, and done is done once more only where nobody knew."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
import raw
from children import Child, say
from sqlite_files import drain, lease, open_at

from headrace.errors import LeaseLost
from headrace.job import Job
from headrace.queue import Queue


def test_the_jobs_of_a_killed_worker_start_once_more_when_their_leases_are_over(path: Path) -> None:
    """F01: four in flight, sixteen not begun."""

    def worker() -> None:
        with open_at(path, lease=1.5) as queue:
            say([lease(queue).id for _ in range(4)])
            time.sleep(60)

    with open_at(path) as queue:
        queue.enqueue_many([Job(id=f"job{n}") for n in range(20)])
    killed = Child(worker)
    begun = killed.hear()
    killed.kill()
    with open_at(path) as queue:
        raw.check(path)
        first = drain(queue)
        assert [(job.attempt, job.id in begun) for job in first] == [(1, False)] * 16
        again = [lease(queue, timeout=10) for _ in range(4)]
        assert [job.id for job in again] == begun
        assert [job.attempt for job in again] == [2] * 4
        assert all(job.last_error is not None and "lease expired" in job.last_error for job in again)
        queue.ack_many(again)
        stats = queue.stats()
        assert (stats.acked, stats.expired_leases, stats.dead, stats.unaccounted) == (20, 4, 0, 0)


def test_a_job_that_kills_its_worker_each_time_is_dead_at_its_limit(path: Path) -> None:
    """F04, at the queue: the attempt counts when it begins."""

    def worker() -> None:
        with open_at(path, lease=0.02) as queue:
            say(lease(queue, timeout=10).attempt)
            time.sleep(60)

    with open_at(path, max_attempts=3) as queue:
        queue.enqueue(Job(id="poison"))
    for attempt in (1, 2, 3):
        victim = Child(worker)
        assert victim.hear() == attempt
        victim.kill()
    with open_at(path) as queue:
        assert queue.dequeue(timeout=0.5) is None
        (dead,) = queue.dead()
        assert (dead.id, dead.attempt) == ("poison", 3)
        assert dead.last_error is not None
        assert "lease expired" in dead.last_error


def _storm(path: Path, ledger: Path, seed: int) -> None:
    """Random calls for ever. The ledger says what was accepted, and what was about to be let go of."""
    choice = random.Random(seed)
    witness = os.open(ledger, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    with open_at(path, lease=0.05, max_attempts=100, capacity=100_000) as queue:
        for number in range(1_000_000):
            jobs = [
                Job(id=f"{seed}-{number}-{n}", delay=choice.choice((0.0, 0.05))) for n in range(choice.randint(1, 5))
            ]
            queue.enqueue_many(jobs)
            os.write(witness, "".join(f"accepted {job.id}\n" for job in jobs).encode())
            held = queue.dequeue_many(choice.randint(1, 6), timeout=0)
            if number == 3:
                say("in the middle of it")
            for job in held:
                with suppress(LeaseLost):  # leases are as short as the scheduler's whims
                    _settle(queue, job, choice.randrange(7), witness)
            queue.replay(limit=2)


def _settle(queue: Queue, job: Job, what: int, witness: int) -> None:
    if what < 2:
        os.write(witness, f"settling {job.id}\n".encode())
        queue.ack(job)
    elif what == 2:
        queue.nack(job, delay=0.01, error="again")
    elif what == 3:
        queue.release(job)
    elif what == 4:
        queue.bury(job, error="no")
    elif what == 5:
        queue.extend(job, 0.02)


@pytest.mark.parametrize("seed", range(8))
def test_a_storm_of_calls_cut_off_by_a_kill_leaves_every_accepted_job_in_one_place(
    path: Path, tmp_path: Path, seed: int
) -> None:
    """F05: two processes at once, killed at a random moment."""
    ledger = tmp_path / "ledger"
    storms = [Child(_storm, path, ledger, seed * 2 + n) for n in range(2)]
    for storm in storms:
        storm.hear()
    time.sleep(random.Random(seed).uniform(0, 0.08))
    for storm in storms:
        storm.kill()
    raw.check(path)
    lines = [line.split(" ", 1) for line in ledger.read_text().splitlines()]
    accepted = {id for what, id in lines if what == "accepted"}
    settling = {id for what, id in lines if what == "settling"}
    assert accepted
    with open_at(path) as queue:
        queue.replay()
        left: Counter[str] = Counter()
        while (stats := queue.stats()).size:
            left.update(job.id for job in drain(queue, timeout=0.2))
        assert stats.unaccounted == 0
        left.update(job.id for job in queue.take_dead(100_000))
    assert max(left.values()) == 1
    assert accepted - settling <= set(left)
