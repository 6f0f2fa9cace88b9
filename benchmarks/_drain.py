"""A pool that works through what waits, and ends."""

from __future__ import annotations

from collections.abc import Callable

from headrace import Job, Pool
from headrace.queue import Queue


def drain(jobs: Queue, count: int, workers: int) -> None:
    """Returns when ``count`` jobs have been run by a no-op async handler, and settled."""
    left = count

    async def nothing(job: Job) -> None:
        nonlocal left
        left -= 1
        if not left:
            pool.stop()

    pool = Pool(jobs, nothing, workers)
    pool.run()
    assert jobs.stats().inflight == 0


def fill(jobs: Queue, count: int, make: Callable[[int], Job]) -> None:
    for first in range(0, count, 5_000):
        jobs.enqueue_many([make(number) for number in range(first, min(first + 5_000, count))])
