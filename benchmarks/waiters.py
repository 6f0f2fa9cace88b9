"""Many callers wait, one produces: what a job costs with 8 and with 512 of them, tasks and threads."""

from __future__ import annotations

import asyncio
import itertools
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any

from headrace import Job, QueueClosed, connect, connect_async

from ._harness import Bench, Case, Ratio, Scale, per_job, stopwatch

FEW, MANY = 8, 512
BURST = 64
"""Jobs that a producing task makes before it lets the others run."""


def benches(scale: Scale) -> Iterator[Bench]:
    count = scale.count(20_000)
    yield _bench("tasks", {"Headrace": tasks, "asyncio.Queue": plain_tasks}, count)
    heap: Callable[[], queue.PriorityQueue[int]] = queue.PriorityQueue
    simple: Callable[[], queue.SimpleQueue[int]] = queue.SimpleQueue
    plain = {"PriorityQueue": partial(plain_threads, heap), "SimpleQueue": partial(plain_threads, simple)}
    yield _bench("threads", {"Headrace": threads, **plain}, count)


def _bench(kind: str, ways: dict[str, Callable[[int, int], float]], count: int) -> Bench:
    def name(way: str, waiting: int) -> list[str]:
        return [f"{way}, {waiting} {kind}"]

    peer = list(ways)[1]
    return Bench(
        f"Waiting {kind}, one that produces",
        "µs a job",
        [Case(name(way, n)[0], partial(run, n, count)) for way, run in ways.items() for n in (FEW, MANY)],
        [
            *[
                Ratio(f"{MANY} / {FEW} waiting", name(way, MANY), name(way, FEW), at_most=at_most)
                for way, at_most in zip(ways, (1.3, None, None), strict=False)
            ],
            *[Ratio(f"a job / {peer}'s", name("Headrace", n), name(peer, n)) for n in (FEW, MANY)],
        ],
    )


def tasks(waiting: int, count: int) -> float:
    return asyncio.run(_tasks(waiting, count))


def plain_tasks(waiting: int, count: int) -> float:
    return asyncio.run(_plain_tasks(waiting, count))


async def _tasks(waiting: int, count: int) -> float:
    done = asyncio.Event()
    numbers = itertools.count(1)
    async with connect_async("memory://", capacity=count) as jobs:

        async def consume() -> None:
            while (job := await jobs.dequeue()) is not None:
                await jobs.ack(job)
                if next(numbers) == count:
                    done.set()

        async def produce(number: int) -> None:
            await jobs.enqueue(Job(b""))

        return await _timed(consume, produce, done, waiting, count)


async def _plain_tasks(waiting: int, count: int) -> float:
    done = asyncio.Event()
    numbers = itertools.count(1)
    jobs: asyncio.Queue[int] = asyncio.Queue()

    async def consume() -> None:
        while True:
            await jobs.get()
            if next(numbers) == count:
                done.set()

    return await _timed(consume, jobs.put, done, waiting, count)


async def _timed(
    consume: Callable[[], Coroutine[Any, Any, None]],
    produce: Callable[[int], Coroutine[Any, Any, None]],
    done: asyncio.Event,
    waiting: int,
    count: int,
) -> float:
    consumers = [asyncio.create_task(consume()) for _ in range(waiting)]
    await asyncio.sleep(0.01)  # all of them wait now
    with stopwatch() as seconds:
        for number in range(count):
            await produce(number)
            if number % BURST == 0:
                await asyncio.sleep(0)
        await done.wait()
    for consumer in consumers:
        consumer.cancel()
    await asyncio.gather(*consumers, return_exceptions=True)
    return per_job(count, seconds())


def threads(waiting: int, count: int) -> float:
    done = threading.Event()
    numbers = itertools.count(1)
    with connect("memory://", capacity=count) as jobs:

        def consume() -> None:
            try:
                while (job := jobs.dequeue()) is not None:
                    jobs.ack(job)
                    if next(numbers) == count:
                        done.set()
            except QueueClosed:
                pass

        consumers = _started(consume, waiting)
        with stopwatch() as seconds:
            for _ in range(count):
                jobs.enqueue(Job(b""))
            done.wait()
    for consumer in consumers:
        consumer.join()
    return per_job(count, seconds())


def plain_threads(
    make: Callable[[], queue.PriorityQueue[int] | queue.SimpleQueue[int]], waiting: int, count: int
) -> float:
    jobs = make()
    done = threading.Event()
    numbers = itertools.count(1)

    def consume() -> None:
        while jobs.get() >= 0:
            if next(numbers) == count:
                done.set()

    consumers = _started(consume, waiting)
    with stopwatch() as seconds:
        for number in range(count):
            jobs.put(number)
        done.wait()
    for _ in consumers:
        jobs.put(-1)
    for consumer in consumers:
        consumer.join()
    return per_job(count, seconds())


def _started(consume: Callable[[], None], waiting: int) -> list[threading.Thread]:
    consumers = [threading.Thread(target=consume, daemon=True) for _ in range(waiting)]
    for consumer in consumers:
        consumer.start()
    time.sleep(0.05)  # all of them wait now
    return consumers
