"""A no-op async job through the pool in memory, against other libraries' in-memory brokers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from headrace import App, Job, connect

from ._drain import drain
from ._harness import Bench, Case, Ratio, Scale, per_job, stopwatch
from .peers import MEMORY, isolated

WORKERS = 8


def benches(scale: Scale) -> Iterator[Bench]:
    count, few = scale.count(20_000), scale.count(5_000)
    ours = [Case("Headrace, jobs", partial(jobs, count)), Case("Headrace, tasks of an app", partial(tasks, count))]
    theirs = [Case(name, partial(peer, name, few)) for name in MEMORY]
    yield Bench(
        f"No-op jobs in memory, {WORKERS} workers: enqueue one by one, run, settle",
        "µs a job",
        [*ours, *theirs],
        [
            Ratio(
                "best peer / ours, bar for a compiled core",
                [case.name for case in theirs],
                [case.name],
                at_least=at_least,
            )
            for case, at_least in zip(ours, (20, None), strict=True)
        ],
    )


def jobs(count: int) -> float:
    with connect("memory://", capacity=count) as queue, stopwatch() as seconds:
        for _ in range(count):
            queue.enqueue(Job(b""))
        drain(queue, count, WORKERS)
    return per_job(count, seconds())


def tasks(count: int) -> float:
    with App("memory://", capacity=count) as app:
        left = count

        @app.task
        async def nothing() -> None:
            nonlocal left
            left -= 1
            if not left:
                pool.stop()

        pool = app.pool(workers=WORKERS)
        with stopwatch() as seconds:
            for _ in range(count):
                nothing.enqueue()
            pool.run()
    return per_job(count, seconds())


def peer(name: str, count: int) -> float:
    with isolated(), stopwatch() as seconds:
        MEMORY[name](count, WORKERS)
    return per_job(count, seconds())
