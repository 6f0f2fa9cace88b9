"""One thread, no waiting: a round trip through the queue in memory, however much waits in it."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from functools import partial

from headrace import Job, connect
from headrace.queue import Queue

from ._harness import Bench, Case, Ratio, Scale, per_job, stopwatch

Priority = Callable[[int], int]
BATCH = 32


def same(number: int) -> int:
    return 0


def mixed(number: int) -> int:
    return number * 7 % 10


def benches(scale: Scale) -> Iterator[Bench]:
    count = scale.count(20_000)
    deepest = scale.count(1_000_000)
    yield at_depth("nothing waiting", 0, count, same, at_most=4.5)
    yield at_depth("10,000 waiting", 10_000, count, same)
    yield at_depth("100,000 waiting", 100_000, count, same, at_most=10)
    yield at_depth("100,000 waiting, ten priorities", 100_000, count, mixed)
    yield deep(deepest, count)


def at_depth(what: str, depth: int, count: int, priority: Priority, at_most: float | None = None) -> Bench:
    """The whole way of a job, against the put and get of Python's own queues at the same depth."""
    jobs, heap, plain = filled(depth, priority), filled_heap(depth, priority), filled_simple(depth)
    cases = [
        Case("Headrace: make, enqueue, dequeue, ack", partial(round_trips, jobs, count, priority)),
        Case(f"Headrace: the same in batches of {BATCH}", partial(batched, jobs, count, priority)),
        Case("PriorityQueue: put, get", partial(heap_round_trips, heap, count, priority)),
        Case("SimpleQueue: put, get", partial(simple_round_trips, plain, count)),
    ]
    ratios = [
        Ratio("a job / PriorityQueue's", [cases[0].name], [cases[2].name]),
        Ratio("a job / SimpleQueue's, bar for a compiled core", [cases[0].name], [cases[3].name], at_most=at_most),
    ]
    return Bench(f"Memory, one thread, {what}", "µs a job", cases, ratios)


def deep(deepest: int, count: int) -> Bench:
    """A queue behaves with a million waiting as with a thousand."""
    cases: list[Case] = []
    for depth in (1_000, deepest):
        jobs = filled(depth, mixed)
        jobs.stats()  # the first one is a case of its own
        cases.append(Case(f"{depth:,} waiting: round trip", partial(round_trips, jobs, count, mixed)))
        cases.append(Case(f"{depth:,} waiting: stats", partial(stats, jobs, count // 10)))
    cases.append(Case("100,000 just enqueued: the first stats", first_stats))
    ratios = [
        Ratio("round trip, deep / shallow", [cases[2].name], [cases[0].name], at_most=2),
        Ratio("stats, deep / shallow", [cases[3].name], [cases[1].name], at_most=2),
    ]
    return Bench("Memory, depth, ten priorities", "µs a call", cases, ratios)


def filled(depth: int, priority: Priority) -> Queue:
    jobs = connect("memory://", capacity=depth + 1_000)
    for first in range(0, depth, 1_000):
        jobs.enqueue_many(Job(priority=priority(number)) for number in range(first, min(first + 1_000, depth)))
    return jobs


def filled_heap(depth: int, priority: Priority) -> queue.PriorityQueue[tuple[int, int]]:
    heap: queue.PriorityQueue[tuple[int, int]] = queue.PriorityQueue()
    for number in range(depth):
        heap.put((priority(number), number))
    return heap


def filled_simple(depth: int) -> queue.SimpleQueue[int]:
    plain: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(depth):
        plain.put(number)
    return plain


def round_trips(jobs: Queue, count: int, priority: Priority) -> float:
    with stopwatch() as seconds:
        for number in range(count):
            jobs.enqueue(Job(b"", priority=priority(number)))
            job = jobs.dequeue(0)
            assert job is not None
            jobs.ack(job)
    return per_job(count, seconds())


def batched(jobs: Queue, count: int, priority: Priority) -> float:
    with stopwatch() as seconds:
        for number in range(0, count, BATCH):
            jobs.enqueue_many([Job(b"", priority=priority(number + each)) for each in range(BATCH)])
            jobs.ack_many(jobs.dequeue_many(BATCH, 0))
    return per_job(count, seconds())


def stats(jobs: Queue, count: int) -> float:
    with stopwatch() as seconds:
        for _ in range(count):
            jobs.stats()
    return per_job(count, seconds())


def first_stats() -> float:
    return stats(filled(100_000, mixed), 1)


def heap_round_trips(heap: queue.PriorityQueue[tuple[int, int]], count: int, priority: Priority) -> float:
    with stopwatch() as seconds:
        for number in range(count):
            heap.put((priority(number), 10_000_000 + number))
            heap.get()
    return per_job(count, seconds())


def simple_round_trips(plain: queue.SimpleQueue[int], count: int) -> float:
    with stopwatch() as seconds:
        for number in range(count):
            plain.put(number)
            plain.get()
    return per_job(count, seconds())
