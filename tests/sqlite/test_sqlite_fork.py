"""F18: a queue that was open when the process forked works on both sides, each with a connection of its own."""

from __future__ import annotations

import multiprocessing
import os
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import raw
from children import Child, listen, say
from sqlite_files import drain, lease, open_at

import headrace
from headrace.errors import LeaseLost, Unsupported
from headrace.job import Job
from headrace.queue import Queue
from headrace.testing.clock import wait_until


def test_parent_and_child_both_use_the_queue_that_was_open_at_the_fork(path: Path) -> None:
    def child() -> list[str]:
        queue.enqueue(Job(id="from the child"))
        return [job.id for job in drain(queue)]

    with open_at(path) as queue:
        queue.enqueue(Job(id="from the parent"))
        assert Child(child).result() == ["from the parent", "from the child"]
        queue.enqueue(Job(id="later"))
        assert [job.id for job in drain(queue)] == ["later"]
        assert queue.stats().acked == 3


def test_jobs_of_a_forked_child_survive_the_close_of_its_parent(path: Path) -> None:
    """The last connection to close removes the log; it must not think it is the last while a child writes there."""

    def child() -> None:
        queue.enqueue(Job(id="first"))
        say("wrote")
        listen()
        queue.enqueue_many([Job(id=f"job{n}") for n in range(20)])

    queue = open_at(path)
    queue.enqueue(Job(id="parent"))
    forked = Child(child)
    forked.hear()
    queue.close()
    forked.tell()
    forked.result()
    with open_at(path) as again:
        assert [job.id for job in drain(again)] == ["parent", "first", *(f"job{n}" for n in range(20))]


def test_jobs_of_the_parent_survive_the_close_of_its_child(path: Path) -> None:
    def child() -> None:
        queue.enqueue(Job(id="child"))
        queue.close()

    with open_at(path) as queue:
        queue.enqueue(Job(id="parent"))
        Child(child).result()
        queue.enqueue(Job(id="later"))
        assert [job.id for job in drain(queue)] == ["parent", "child", "later"]
    assert raw.picture(path).rows == ()


def test_a_child_forked_amid_transactions_of_other_threads_is_not_locked_out(path: Path) -> None:
    def child(number: int) -> None:
        queue.enqueue(Job(id=f"child{number}"))

    def work() -> None:
        while not stop.is_set():
            queue.enqueue_many([Job(b"x" * 100) for _ in range(20)])
            queue.ack_many([job for job in queue.dequeue_many(20) if not job.id.startswith("child")])

    stop = threading.Event()
    with open_at(path, busy_timeout=5.0) as queue:
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for number in range(15):
                Child(child, number).result()
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert {f"child{n}" for n in range(15)} <= {row.id for row in raw.picture(path).rows}


def test_threads_that_fork_at_the_same_time_do_not_lock_the_parent(path: Path) -> None:
    def child() -> None:
        for queue in queues:
            queue.enqueue(Job())

    def fork() -> None:
        for _ in range(10):
            try:
                Child(child).result()
            except BaseException as error:
                failed.append(error)

    def use(queue: Queue) -> None:
        while not stop.is_set():
            queue.enqueue(Job())
            queue.ack(lease(queue))

    failed: list[BaseException] = []
    stop = threading.Event()
    with ExitStack() as stack:
        queues = [stack.enter_context(open_at(path, queue=f"q{n}")) for n in range(3)]
        users = [threading.Thread(target=use, args=(queue,), daemon=True) for queue in queues]
        forkers = [threading.Thread(target=fork, daemon=True) for _ in range(3)]
        for thread in (*users, *forkers):
            thread.start()
        for thread in forkers:
            thread.join(20)
        stop.set()
        for thread in users:
            thread.join(10)
        assert not [thread for thread in (*users, *forkers) if thread.is_alive()], "somebody waits for a lock for ever"
        assert not failed
        assert sum(queue.stats().enqueued - queue.stats().acked for queue in queues) == 90


def test_a_child_forked_beside_a_waiting_thread_does_not_inherit_the_waiter(path: Path) -> None:
    """Else it would leave the watch over the file to a thread that lives in the parent only."""

    def child() -> str:
        say("here")
        return lease(queue, timeout=60).id

    with open_at(path) as queue:
        got: list[str] = []
        waiter = threading.Thread(target=lambda: got.append(lease(queue, timeout=60).id))
        waiter.start()
        wait_until(lambda: bool(queue.store.rooms.consumers.tickets))  # type: ignore[attr-defined]  # not in the protocol
        forked = Child(child)
        forked.hear()
        queue.enqueue_many([Job(id="a"), Job(id="b")])
        waiter.join(10)
        assert {forked.result(5), *got} == {"a", "b"}


def test_a_lease_taken_before_the_fork_is_settled_by_one_side_only(path: Path) -> None:
    def child() -> None:
        queue.ack(held)

    with open_at(path) as queue:
        queue.enqueue(Job(id="a"))
        held = lease(queue)
        Child(child).result()
        with pytest.raises(LeaseLost):
            queue.ack(held)


async def test_a_child_forked_from_an_event_loop_can_use_the_async_face(path: Path) -> None:
    """The thread that carries out the steps stays behind in the parent."""

    def child() -> str:
        import asyncio

        async def main() -> str:
            job = await queue.dequeue(timeout=5)
            assert job is not None
            await queue.ack(job)
            return job.id

        return asyncio.run(main())

    async with headrace.connect_async(f"sqlite:///{path}") as queue:
        await queue.enqueue(Job(id="a"))
        thread: list[str] = []
        forker = threading.Thread(target=lambda: thread.append(Child(child).result()))
        forker.start()
        forker.join(20)
        assert thread == ["a"]
        assert (await queue.stats()).acked == 1


def test_a_memory_queue_refuses_in_a_forked_child_in_words() -> None:
    def child() -> list[str]:
        said = []
        for call in (lambda: queue.enqueue(Job()), lambda: queue.dequeue(0), queue.stats, lambda: queue.ack(held)):
            with pytest.raises(Unsupported) as caught:
                call()
            said.append(str(caught.value))
        return said

    with headrace.connect("memory://") as queue:
        queue.enqueue_many([Job(id="a"), Job(id="b")])
        held = lease(queue)
        for words in Child(child).result():
            assert "sqlite:///" in words
        queue.ack(held)
        assert queue.stats().ready == 1


def _worker(url: str, count: int) -> None:
    with headrace.connect(url) as queue:
        for number in range(count):
            job = queue.dequeue(timeout=10)
            assert job is not None
            queue.enqueue(Job(id=f"{job.id} from {os.getpid()} {number}", delay=3600.0))
            queue.ack(job)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing_children_share_the_file(path: Path, method: str) -> None:
    """However they are started: each follows its job up with another, while the parent goes on."""
    with open_at(path) as queue:
        queue.enqueue_many([Job(id=f"job{n}") for n in range(30)])
        context: Any = multiprocessing.get_context(method)
        processes = [context.Process(target=_worker, args=(f"sqlite:///{path}", 10)) for _ in range(3)]
        for process in processes:
            process.start()
        queue.stats()
        for process in processes:
            process.join(30)
        assert [process.exitcode for process in processes] == [0, 0, 0]
        stats = queue.stats()
    assert (stats.acked, stats.delayed, stats.unaccounted) == (30, 30, 0)
