"""Other queues, each behind the same few calls. What is not installed is left out, and said so.

They promise less, which is to their advantage here: huey forgets a job when it hands it out; what persist-queue or
litequeue handed out stays so until the program asks for it back. Every one is set to the same ``synchronous`` as
Headrace.
"""

from __future__ import annotations

import asyncio
import importlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ._harness import Unmeasured

PAYLOAD = "x" * 100


def _import(name: str, package: str = "") -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Unmeasured(f"not installed; pip install {package or name.partition('.')[0]}") from None


@contextmanager
def isolated() -> Iterator[None]:
    """A peer that fails is left out; our own failures end the run."""
    try:
        yield
    except Unmeasured:
        raise
    except Exception as error:
        raise Unmeasured(f"failed with {error!r}") from error


class Durable(NamedTuple):
    """A queue in an SQLite file. ``take`` claims one job and settles it; ``drain`` does so with ``count`` of them
    as the library's own worker does, where it has one; ``bulk`` puts ``count`` at once, where that can be done."""

    put: Callable[[], object]
    take: Callable[[], object]
    drain: Callable[[int], None]
    close: Callable[[], object]
    bulk: Callable[[int], None] | None = None


def huey_file(path: str, synchronous: str) -> Durable:
    class Connection(sqlite3.Connection):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.execute(f"PRAGMA synchronous = {synchronous}")

    queue = _import("huey").SqliteHuey(filename=path, results=False, factory=Connection)
    done = threading.Semaphore(0)
    task = queue.task()(lambda text: done.release())

    def drain(count: int) -> None:
        while done.acquire(blocking=False):
            pass  # what ran before this does not count
        with_workers(queue, 8, lambda: [done.acquire() for _ in range(count)])

    return Durable(lambda: task(PAYLOAD), lambda: queue.execute(queue.dequeue()), drain, queue.storage.close)


def litequeue_file(path: str, synchronous: str) -> Durable:
    queue = _import("litequeue").LiteQueue(path)
    queue.conn.execute(f"PRAGMA synchronous = {synchronous}")

    def take() -> None:
        queue.done(queue.pop().message_id)

    def bulk(count: int) -> None:
        with queue.transaction():
            for _ in range(count):
                queue.put(PAYLOAD)

    return Durable(lambda: queue.put(PAYLOAD), take, _one_by_one(take), queue.close, bulk)


def persistqueue_file(path: str, synchronous: str) -> Durable:
    queue = _import("persistqueue", "persist-queue").SQLiteAckQueue(f"{path}.folder")
    for connection in (queue._putter, queue._getter):
        connection.execute(f"PRAGMA synchronous = {synchronous}")

    def take() -> None:
        queue.ack(queue.get(block=False))

    return Durable(lambda: queue.put(PAYLOAD), take, _one_by_one(take), queue.close)


DURABLE: dict[str, Callable[[str, str], Durable]] = {
    "huey": huey_file,
    "litequeue": litequeue_file,
    "persist-queue": persistqueue_file,
}


def _one_by_one(take: Callable[[], object]) -> Callable[[int], None]:
    def drain(count: int) -> None:
        for _ in range(count):
            take()

    return drain


def with_workers(queue: Any, workers: int, work: Callable[[], object]) -> None:
    """``work()`` while huey's own worker threads run; its consumer's ``start`` would take over the signals too."""
    consumer = queue.create_consumer(workers=workers, periodic=False)
    for _, thread in consumer.worker_threads:
        thread.start()
    work()
    consumer.stop_flag.set()
    for _, thread in consumer.worker_threads:
        thread.join()


def huey_memory(count: int, workers: int) -> None:
    queue = _import("huey").MemoryHuey(results=False)
    done = threading.Semaphore(0)
    task = queue.task()(lambda: done.release())

    def work() -> None:
        for _ in range(count):
            task()
        for _ in range(count):
            done.acquire()

    with_workers(queue, workers, work)


def taskiq_memory(count: int, workers: int) -> None:
    async def work() -> None:
        broker = _import("taskiq").InMemoryBroker(max_async_tasks=workers)

        @broker.task  # type: ignore[untyped-decorator] # the peer is imported only where it is installed
        async def nothing() -> None:
            pass

        await broker.startup()
        for _ in range(count):
            await nothing.kiq()
        await broker.wait_all()
        await broker.shutdown()

    asyncio.run(work())


def dramatiq_memory(count: int, workers: int) -> None:
    dramatiq = _import("dramatiq")
    broker = _import("dramatiq.brokers.stub").StubBroker()
    nothing = dramatiq.actor(lambda: None, actor_name="nothing", broker=broker)
    worker = dramatiq.Worker(broker, worker_timeout=10, worker_threads=workers)
    worker.start()
    for _ in range(count):
        nothing.send()
    broker.join("default")
    worker.join()
    worker.stop()


MEMORY: dict[str, Callable[[int, int], None]] = {
    "huey, MemoryHuey": huey_memory,
    "taskiq, InMemoryBroker": taskiq_memory,
    "dramatiq, StubBroker": dramatiq_memory,
}
