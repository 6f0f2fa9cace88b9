"""Whoever waits in one process is woken by what another writes. The limits are far below what a waiter would wait."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from children import Child, listen, say
from sqlite_files import drain, lease, open_at

from headrace.errors import QueueFull
from headrace.job import Job
from headrace.overflow import Block

SOON = 5.0
LONG = 60.0


def test_a_waiter_gets_the_job_that_another_process_enqueues(path: Path) -> None:
    def child() -> str:
        with open_at(path) as queue:
            say("open")
            job = lease(queue, timeout=LONG)
            queue.ack(job)
            return job.id

    waiter = Child(child)
    waiter.hear()
    with open_at(path) as queue:
        queue.enqueue(Job(id="a"))
        assert waiter.result(SOON) == "a"


def test_every_waiter_of_a_process_gets_one_of_the_jobs_of_another(path: Path) -> None:
    """One of them watches the file; it has to wake the others."""

    def child() -> list[str]:
        with open_at(path) as queue:
            got: list[str] = []
            threads = [threading.Thread(target=lambda: got.append(lease(queue, timeout=LONG).id)) for _ in range(6)]
            for thread in threads:
                thread.start()
            say("waiting")
            for thread in threads:
                thread.join()
            return sorted(got)

    waiters = Child(child)
    waiters.hear()
    with open_at(path) as queue:
        queue.enqueue_many([Job(id=f"job{n}") for n in range(3)])
        for number in range(3, 6):
            queue.enqueue(Job(id=f"job{number}"))
        assert waiters.result(SOON) == [f"job{n}" for n in range(6)]


def test_a_waiter_gets_a_delayed_job_of_another_process_when_it_is_due(path: Path) -> None:
    def child() -> str:
        with open_at(path, poll=LONG) as queue:  # not by looking again and again: by the moment itself
            say("open")
            listen()
            return lease(queue, timeout=LONG).id

    waiter = Child(child)
    waiter.hear()
    with open_at(path) as queue:
        queue.enqueue(Job(id="a", delay=0.4))
        waiter.tell()
        assert waiter.result(SOON) == "a"


def test_a_waiter_gets_the_job_whose_lease_another_process_let_run_out(path: Path) -> None:
    """F01: nobody has to come by for that."""

    def child() -> None:
        with open_at(path, lease=0.4) as queue:
            queue.enqueue(Job(id="a"))
            lease(queue)
            say("leased")
            listen()

    holder = Child(child)
    holder.hear()
    with open_at(path) as queue:
        holder.kill()
        job = lease(queue, timeout=SOON)
        assert (job.id, job.attempt) == ("a", 2)
        assert job.last_error is not None
        assert "lease expired" in job.last_error


def test_a_producer_that_waits_for_room_is_woken_by_an_ack_of_another_process(path: Path) -> None:
    def child() -> int:
        with open_at(path, capacity=2, overflow="block") as queue:
            queue.enqueue_many([Job(id="a"), Job(id="b")])
            say("full")
            queue.enqueue(Job(id="c"))
            return queue.stats().enqueued

    producer = Child(child)
    producer.hear()
    with open_at(path, capacity=2) as queue:
        queue.ack(lease(queue))
        assert producer.result(SOON) == 3
        assert [job.id for job in drain(queue)] == ["b", "c"]


def test_a_producer_that_waits_for_room_in_vain_is_told_so(path: Path) -> None:
    with open_at(path, capacity=1, overflow=Block(timeout=0.05)) as queue:
        queue.enqueue(Job(id="a"))
        with pytest.raises(QueueFull):
            queue.enqueue(Job(id="b"))
        assert [job.id for job in drain(queue)] == ["a"]


def test_resume_in_one_process_wakes_the_waiter_in_another(path: Path) -> None:
    def child() -> str:
        with open_at(path) as queue:
            assert queue.dequeue(timeout=0) is None
            say("paused")
            return lease(queue, timeout=LONG).id

    with open_at(path) as queue:
        queue.enqueue(Job(id="a"))
        queue.pause()
        waiter = Child(child)
        waiter.hear()
        queue.resume()
        assert waiter.result(SOON) == "a"


def test_a_cancel_in_one_process_is_seen_at_the_next_heartbeat_in_another(path: Path) -> None:
    def child() -> bool:
        with open_at(path) as queue:
            job = lease(queue)
            say("leased")
            listen()
            cancelled = queue.extend(job, 30.0).cancelled
            queue.nack(job, error="stopped")
            return cancelled

    with open_at(path) as queue:
        queue.enqueue(Job(id="a"))
        worker = Child(child)
        worker.hear()
        assert queue.cancel("a") is False
        worker.tell()
        assert worker.result() is True
        stats = queue.stats()
        assert (stats.cancelled, stats.retried, stats.size) == (1, 0, 0)


def test_two_handles_in_one_process_wake_each_other(path: Path) -> None:
    with open_at(path) as here, open_at(path) as there:
        got: list[str] = []
        waiter = threading.Thread(target=lambda: got.append(lease(here, timeout=LONG).id))
        waiter.start()
        there.enqueue(Job(id="a"))
        waiter.join(SOON)
        assert got == ["a"]
