"""F18: queues that were open when the process forked work on both sides, each with connections of its own."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from children import Child, listen, say
from pg_kit import connected, somebody_sleeps

from headrace import Job, LeaseLost, Queue, connect
from headrace.testing.clock import wait_until

LIMIT = 25.0
POLL = 60.0
"""Nobody finds a job by a look of their own."""


@pytest.fixture
def pair(dsn: str) -> Iterator[tuple[Queue, Queue]]:
    """Two queues of one schema, which share connections and a listener."""
    mine, other = connect(dsn, queue="mine", poll=POLL), connect(dsn, queue="other", poll=POLL)
    yield mine, other
    mine.close()
    other.close()


def woken(queue: Queue, dsn: str, threads: ThreadPoolExecutor) -> str:
    """The id of a job that somebody else puts in while one sleeps here."""
    sleeping = threads.submit(queue.dequeue)
    wait_until(lambda: somebody_sleeps(dsn), LIMIT)
    put_in(dsn, queue.settings.queue)
    job = sleeping.result(LIMIT)
    assert job is not None
    queue.ack(job)
    return job.id


def put_in(dsn: str, name: str) -> None:
    there = connect(f"{dsn}?application_name=there", queue=name)
    there.enqueue(Job(id=f"for {name}"))
    there.close()


def test_both_sides_go_on_enqueueing_sleeping_and_being_woken(dsn: str, pair: tuple[Queue, Queue]) -> None:
    mine, other = pair

    def child() -> list[str]:
        mine.enqueue(Job(id="from the child"))
        taken = mine.dequeue_many(9, 0)
        mine.ack_many(taken)
        with ThreadPoolExecutor(1) as threads:
            return [job.id for job in taken] + [woken(queue, dsn, threads) for queue in pair]

    with ThreadPoolExecutor(1) as threads:
        assert woken(mine, dsn, threads) == "for mine"  # so that there is a listener at the fork
        mine.enqueue(Job(id="from the parent"))
        assert Child(child).result(LIMIT) == ["from the parent", "from the child", "for mine", "for other"]
        assert [woken(queue, dsn, threads) for queue in pair] == ["for mine", "for other"]
    assert mine.stats().acked == 5
    assert other.stats().acked == 2


def test_a_child_that_ends_leaves_the_sessions_of_its_parent_alone(dsn: str, pair: tuple[Queue, Queue]) -> None:
    mine, _ = pair
    mine.stats()
    sessions = (
        "SELECT array_agg(pid ORDER BY pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = 'headrace'"
    )
    with connected(dsn) as watch:
        before = watch.execute(sessions).fetchone()
        for close in (True, False):
            process = multiprocessing.get_context("fork").Process(target=use, args=(mine, close))
            process.start()
            process.join(LIMIT)
            assert process.exitcode == 0
        mine.enqueue(Job())
        wait_until(lambda: watch.execute(sessions).fetchone() == before, LIMIT)
    assert mine.stats().enqueued == 3


def use(queue: Queue, close: bool) -> None:
    """In a child that ends as programs do, with everything cleared up."""
    queue.enqueue(Job())
    if close:
        queue.close()


def test_a_lease_that_was_taken_before_the_fork_is_settled_by_one_side_only(pair: tuple[Queue, Queue]) -> None:
    mine, _ = pair
    mine.enqueue(Job(id="job"))
    job = mine.dequeue(0)
    assert job is not None
    Child(mine.ack, job).result(LIMIT)
    with pytest.raises(LeaseLost):
        mine.ack(job)


def test_children_that_are_forked_amid_the_calls_of_many_threads_are_not_locked_out(
    pair: tuple[Queue, Queue],
) -> None:
    mine, _ = pair
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            mine.enqueue(Job())
            mine.ack_many(mine.dequeue_many(2, 0))

    def child() -> int:
        mine.enqueue(Job())
        say("enqueued")
        listen()
        return len(mine.dequeue_many(1, 0))

    with ThreadPoolExecutor(6) as threads:
        working = [threads.submit(work) for _ in range(6)]
        try:
            for _ in range(15):
                forked = Child(child)
                assert forked.hear(LIMIT) == "enqueued"
                forked.tell()
                forked.result(LIMIT)
        finally:
            stop.set()
        for each in working:
            each.result(LIMIT)
    assert mine.stats().unaccounted == 0
