"""An SQLite file with a million waiting against one with a thousand."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

from headrace import Job, connect
from headrace.queue import Queue

from ._drain import fill
from ._harness import Bench, Case, Ratio, Scale, per_job, stopwatch

CALLS = ("enqueue", "dequeue", "ack", "stats")


def benches(scale: Scale) -> Iterator[Bench]:
    depths = (1_000, scale.count(1_000_000))
    count = scale.count(1_000)
    with ExitStack() as stack:
        queues = {}
        for depth in depths:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            url = f"sqlite:///{folder}/jobs.db"
            queues[depth] = stack.enter_context(connect(url, capacity=depth + count, synchronous="normal"))
            fill(queues[depth], depth, _job)
        yield Bench(
            "SQLite, depth, ten priorities, synchronous=normal",
            "µs a call",
            [
                Case(name(depth, call)[0], partial(one_call, queue, call, count))
                for depth, queue in queues.items()
                for call in CALLS
            ],
            [
                Ratio(f"{call}, deep / shallow", name(depths[1], call), name(depths[0], call), at_most=2)
                for call in CALLS
            ],
        )


def name(depth: int, call: str) -> list[str]:
    return [f"{depth:,} waiting: {call}"]


def one_call(queue: Queue, call: str, count: int) -> float:
    """Times that call alone; the queue is as deep afterwards as before."""
    jobs = [_job(number) for number in range(count)]
    spent = 0.0
    if call == "stats":
        with stopwatch() as seconds:
            for _ in range(count):
                queue.stats()
        return per_job(count, seconds())
    for each in jobs:
        with stopwatch() as enqueued:
            queue.enqueue(each)
        with stopwatch() as dequeued:
            taken = queue.dequeue(0)
        assert taken is not None
        with stopwatch() as acked:
            queue.ack(taken)
        spent += {"enqueue": enqueued, "dequeue": dequeued, "ack": acked}[call]()
    return per_job(count, spent)


def _job(number: int) -> Job:
    return Job(b"x" * 100, priority=number * 7 % 10)
