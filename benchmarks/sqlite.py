"""A queue in an SQLite file against others that keep one, each with the same ``synchronous``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial

from headrace import Job, connect
from headrace.queue import Queue

from ._drain import drain, fill
from ._harness import Bench, Case, Ratio, Scale, per_job, stopwatch
from .peers import DURABLE, PAYLOAD, Durable, isolated

BATCH = 100
WORKERS = (8, 64, 500)
TOGETHER = "litequeue: puts in one transaction"
"""None of the peers has a call for it; this is what its user can do, within one thread."""


def benches(scale: Scale) -> Iterator[Bench]:
    for synchronous in ("full", "normal"):
        yield bench(synchronous, scale)


def bench(synchronous: str, scale: Scale) -> Bench:
    few = scale.count(600 if synchronous == "full" else 2_000)  # a write to the disk takes milliseconds
    many = scale.count(20_000)

    def ours(name: str, count: int, filled: bool, work: Callable[[Queue, int], object]) -> Case:
        return Case(name, partial(_ours, synchronous, count, filled, work))

    def theirs(name: str, filled: bool, work: Callable[[Durable, int], object]) -> list[Case]:
        count = few // 2
        return [Case(f"{peer}: {name}", partial(_theirs, peer, synchronous, count, filled, work)) for peer in DURABLE]

    put, bulk = ours("enqueue one", few, False, enqueue), ours("enqueue_many", many, False, enqueue_many)
    take = ours("dequeue and ack one", few, True, dequeue)
    batches = ours(f"dequeue and ack {BATCH}", many, True, dequeue_many)
    drains = [ours(f"pool, {workers} workers", many, True, partial(drain, workers=workers)) for workers in WORKERS]
    together = Case(TOGETHER, partial(_theirs, "litequeue", synchronous, many, False, bulk_peer))
    puts, takes = theirs("put one", False, put_peer), theirs("take and settle one", True, take_peer)
    peer_drains = theirs("drain", True, drain_peer)
    names = [[case.name for case in cases] for cases in (puts, takes, peer_drains)]
    return Bench(
        f"SQLite, synchronous={synchronous}",
        "µs a job",
        [put, bulk, take, batches, *drains, *puts, together, *takes, *peer_drains],
        [
            Ratio("enqueue one: best peer / ours", names[0], [put.name], at_least=1),
            Ratio("enqueue_many: best peer / ours", names[0], [bulk.name], at_least=10),
            Ratio("enqueue_many: puts in one transaction / ours", [together.name], [bulk.name]),
            Ratio("dequeue and ack one: best peer / ours", names[1], [take.name]),
            *[Ratio("worker drain: best peer / ours", names[2], [case.name], at_least=5) for case in drains],
        ],
    )


def _ours(synchronous: str, count: int, filled: bool, work: Callable[[Queue, int], object]) -> float:
    with (
        tempfile.TemporaryDirectory() as folder,
        connect(f"sqlite:///{folder}/jobs.db", synchronous=synchronous, capacity=count) as jobs,
    ):
        if filled:
            fill(jobs, count, job)
        with stopwatch() as seconds:
            work(jobs, count)
        return per_job(count, seconds())


def _theirs(peer: str, synchronous: str, count: int, filled: bool, work: Callable[[Durable, int], object]) -> float:
    with isolated(), tempfile.TemporaryDirectory() as folder:
        queue = DURABLE[peer](f"{folder}/jobs.db", synchronous)
        if filled:
            put_peer(queue, count)
        with stopwatch() as seconds:
            work(queue, count)
        queue.close()
        return per_job(count, seconds())


def job(number: int = 0) -> Job:
    return Job(PAYLOAD.encode())


def enqueue(jobs: Queue, count: int) -> None:
    for _ in range(count):
        jobs.enqueue(job())


def enqueue_many(jobs: Queue, count: int) -> None:
    fill(jobs, count, job)


def dequeue(jobs: Queue, count: int) -> None:
    for _ in range(count):
        taken = jobs.dequeue(0)
        assert taken is not None
        jobs.ack(taken)


def dequeue_many(jobs: Queue, count: int) -> None:
    for _ in range(count // BATCH):
        jobs.ack_many(jobs.dequeue_many(BATCH, 0))


def put_peer(queue: Durable, count: int) -> None:
    for _ in range(count):
        queue.put()


def bulk_peer(queue: Durable, count: int) -> None:
    assert queue.bulk is not None
    queue.bulk(count)


def take_peer(queue: Durable, count: int) -> None:
    for _ in range(count):
        queue.take()


def drain_peer(queue: Durable, count: int) -> None:
    queue.drain(count)
