"""Several pools balanced by a goal on one queue: together as large as one would be, and none relies on one that is
gone. Virtual time, random arrivals and service times, the same on every run."""

from __future__ import annotations

import asyncio
import random
from typing import NamedTuple

import pytest
from pool_kit import memory

from headrace.job import Job
from headrace.pool import Balance, Pool
from headrace.testing.clock import VirtualClock, run_virtual

GOAL = 2.0


class Look(NamedTuple):
    """At one moment."""

    at: float
    workers: int
    """Of all pools that live."""
    oldest: float
    """Seconds for which the oldest ready job has waited."""


def simulated(pools: int, seconds: float, *, burst: float = -1.0, dying: int = 0) -> list[Look]:
    """20 jobs a second of half a second each, three times as many for half a minute from ``burst`` on; after 90 s so
    many pools die. The looks of the time after the first half minute, four a second."""
    clock, rng, looks = VirtualClock(), random.Random(1), list[Look]()
    queue = memory(clock=clock)

    async def handler(job: Job) -> None:
        await asyncio.sleep(rng.lognormvariate(-0.32, 0.8) / 2)

    balance = Balance(min=1, max=100, target_age=GOAL)
    living = [Pool(queue, handler, balance=balance) for _ in range(pools)]

    async def look() -> None:
        for quarter in range(round(seconds * 4)):
            if quarter / 4 >= 30:
                workers = sum(pool.health().size for pool in living)
                looks.append(Look(quarter / 4, workers, queue.stats().oldest_ready))
            await asyncio.sleep(0.25)

    async def main() -> None:
        tasks = [asyncio.create_task(pool.run_async()) for pool in living]
        looking, at = asyncio.create_task(look()), 0.0
        while not looking.done():
            gap = rng.expovariate(60 if burst <= at < burst + 30 and burst > 0 else 20)
            await asyncio.sleep(gap)
            at += gap
            queue.enqueue(Job())
            if dying and at > 90 and len(living) == pools:
                del living[:dying]
                for task in tasks[:dying]:
                    task.cancel()
                await asyncio.wait(tasks[:dying])
        for pool in living:
            pool.stop()
        await asyncio.gather(*tasks, return_exceptions=True)

    run_virtual(main(), clock)
    return looks


def mean(looks: list[Look]) -> float:
    return sum(look.workers for look in looks) / len(looks)


@pytest.mark.parametrize("pools", [2, 4])
def test_pools_on_one_queue_are_together_as_large_as_one_and_hold_the_goal(pools: int) -> None:
    alone, together = simulated(1, 150), simulated(pools, 150)
    assert mean(together) < mean(alone) + pools, "each rounds up"
    assert max(look.oldest for look in together) < GOAL / 2


def test_a_burst_is_shared_as_well() -> None:
    alone, together = simulated(1, 150, burst=60), simulated(3, 150, burst=60)
    assert max(look.workers for look in together) < 1.3 * max(look.workers for look in alone)
    assert max(look.oldest for look in together) < GOAL


@pytest.mark.parametrize(("pools", "dying"), [(2, 1), (3, 1), (8, 7)])
def test_when_some_of_them_die_the_others_take_over_in_time(pools: int, dying: int) -> None:
    looks = simulated(pools, 240, dying=dying)
    assert max(look.oldest for look in looks) < GOAL
    assert mean(looks[-240:]) > 10, "which is the work there is"
