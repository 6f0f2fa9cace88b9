"""One thread, no waiting: a round trip through the queue in memory, however much waits in it."""

from __future__ import annotations

import queue
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from headrace import Job, connect
from headrace.chosen import INTERPRETED
from headrace.memory.queue import memory_queue
from headrace.queue import Queue
from headrace.settings import Settings
from headrace.testing import VirtualClock

from ._harness import Bench, Case, Ratio, Scale, per_job

Priority = Callable[[int], int]
BATCH = 32


@contextmanager
def stopwatch() -> Iterator[Callable[[], float]]:
    """Seconds of the processor's time: nothing waits here, and what the neighbours take is not ours."""
    start = time.thread_time()
    end = 0.0
    yield lambda: end - start
    end = time.thread_time()


def same(number: int) -> int:
    return 0


def mixed(number: int) -> int:
    return number * 7 % 10


def benches(scale: Scale) -> Iterator[Bench]:
    count = scale.count(20_000)
    deepest = scale.count(1_000_000)
    yield at_depth("nothing waiting, ten priorities", 0, count, mixed, at_most=4.5)
    yield at_depth("10,000 waiting, one priority", 10_000, count, same)
    yield at_depth("100,000 waiting, ten priorities", 100_000, count, mixed, at_most=10)
    yield deep(deepest, count)
    yield crowd(deepest)


def at_depth(what: str, depth: int, count: int, priority: Priority, at_most: float | None = None) -> Bench:
    """The whole way of a job, against the put and get of Python's own queues at the same depth."""
    jobs, heap, plain = filled(depth, priority), filled_heap(depth, priority), filled_simple(depth)
    source = filled(depth, priority, INTERPRETED)
    cases = [
        Case("Headrace: make, enqueue, dequeue, ack", partial(round_trips, jobs, count, priority)),
        Case(f"Headrace: the same in batches of {BATCH}", partial(batched, jobs, count, priority)),
        Case("PriorityQueue: put, get", partial(heap_round_trips, heap, count, priority)),
        Case("SimpleQueue: put, get", partial(simple_round_trips, plain, count)),
        Case("Headrace: enqueue, dequeue, ack alone", partial(calls_alone, jobs, count, priority)),
        Case("Headrace, interpreted: these three alone", partial(calls_alone, source, count, priority)),
    ]
    ratios = [
        Ratio("a job / PriorityQueue's", [cases[0].name], [cases[2].name]),
        Ratio("a job / SimpleQueue's", [cases[0].name], [cases[3].name]),
        Ratio("the calls alone / SimpleQueue's", [cases[4].name], [cases[3].name], at_most=at_most),
        Ratio("interpreted / as it runs here", [cases[5].name], [cases[4].name]),
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


def crowd(count: int) -> Bench:
    """Many delayed jobs that fall due at once stop nobody for long."""
    cases = [
        Case("due in the same moment", partial(longest_call, count, 0)),
        Case("due within ten seconds", partial(longest_call, count, 10)),
        Case("the bar", lambda: 50.0),
    ]
    ratios = [Ratio("the longest call / 50 ms", [case.name], ["the bar"], at_most=1) for case in cases[:2]]
    return Bench(f"Memory, {count:,} delayed jobs are due before the next call", "ms, the longest call", cases, ratios)


def longest_call(count: int, spread: float) -> float:
    """Of the first look at the figures and ten thousand calls that take jobs, in milliseconds."""
    clock = VirtualClock()
    dice = random.Random(1)
    jobs = connect("memory://", capacity=count, clock=clock)
    for _ in range(0, count, 1_000):
        jobs.enqueue_many([Job(priority=mixed(n), delay=60 + dice.random() * spread) for n in range(1_000)])
    clock.advance(60 + spread)
    calls: list[Callable[[], object]] = [jobs.stats, *[partial(jobs.dequeue, 0)] * 10_000]
    longest = 0.0
    for call in calls:
        with stopwatch() as seconds:
            call()
        longest = max(longest, seconds())
    return longest * 1000


def filled(depth: int, priority: Priority, core: str | None = None) -> Queue:
    jobs = memory_queue(Settings.make(capacity=depth + 1_000), core)
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


def calls_alone(jobs: Queue, count: int, priority: Priority) -> float:
    made = [Job(b"", priority=priority(number)) for number in range(count)]
    with stopwatch() as seconds:
        for each in made:
            jobs.enqueue(each)
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


if __name__ == "__main__":
    # For a profiler: the three calls, and nothing else.
    calls_alone(filled(0, mixed), int(sys.argv[1]), mixed)
