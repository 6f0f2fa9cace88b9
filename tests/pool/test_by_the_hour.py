"""Pools with a schedule: other limits take over at their moment, whatever the clock does, and no job notices."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime

import pytest
from elastic_kit import Gauge, in_virtual_time
from pool_kit import Witness, memory
from schedule_kit import PARIS, at

from headrace.job import Job
from headrace.pool import Balance, Hours, Pool, Schedule
from headrace.testing.clock import VirtualClock


def test_the_schedule_takes_over_at_its_hour_and_lets_busy_workers_finish(caplog: pytest.LogCaptureFixture) -> None:
    clock, gauge, witness = VirtualClock(), Gauge(), Witness()  # it is midnight
    queue = memory(clock=clock, lease=60)
    schedule = Schedule({"00:01-00:02": Hours(min=6, max=6), "00:02-00:03": Hours(min=1, max=1)})
    balance = Balance(min=2, max=4, heartbeat=3600.0, sleep_interval=0.0)
    pool = Pool(queue, gauge.handler(lambda _: 10), balance=balance, schedule=schedule, listener=witness)

    async def story() -> None:
        await asyncio.sleep(59.9)
        assert pool.health().active == 2
        await asyncio.sleep(0.2)
        assert pool.health().active == 6
        await asyncio.sleep(57)
        queue.enqueue_many([Job(id=str(number)) for number in range(12)])
        await asyncio.sleep(3)
        health = pool.health()
        assert (health.active, health.running, health.size) == (1, 6, 6), "six are still at work"
        await asyncio.sleep(8)
        health = pool.health()
        assert (health.active, health.running) == (1, 1)
        await asyncio.sleep(120)

    with caplog.at_level(logging.INFO, "headrace.pool"):
        in_virtual_time(pool, story, clock)
    assert gauge.most == 6
    assert set(gauge.starts.values()) == {1}
    assert witness.verdicts() == ["acked"] * 12
    assert "00:01-00:02: 6 to 6 workers" in caplog.text
    assert "outside the schedule's ranges: 2 to 4 workers" in caplog.text


@pytest.mark.parametrize("jump", [60, 3600 * 24 + 60, -3600 * 24 + 60])
def test_a_wall_clock_that_jumps_over_a_boundary_is_noticed(jump: float) -> None:
    clock = VirtualClock()
    schedule = Schedule({"00:01-00:30": Hours(min=5, max=5)})
    pool = Pool(memory(clock=clock), Gauge().handler(lambda _: 0), workers=2, schedule=schedule)

    async def story() -> None:
        await asyncio.sleep(1)
        assert pool.health().active == 2
        clock.step(jump)
        await asyncio.sleep(1.1)
        assert pool.health().active == 5
        clock.step(-jump)
        await asyncio.sleep(10)
        assert pool.health().size == 2

    in_virtual_time(pool, story, clock)


async def fine(job: Job) -> None: ...


@pytest.mark.parametrize(
    ("friday", "night", "opens", "hours"),
    [
        (at("2026-05-29 13:00"), "Fri 22:00-06:00", at("2026-05-29 22:00"), 8),
        (at("2026-03-27 13:00"), "Sat 22:00-06:00", at("2026-03-28 22:00"), 7),
        (at("2026-10-23 13:00"), "Sat 22:00-06:00", at("2026-10-24 22:00"), 9),
    ],
    ids=["as ever", "an hour is skipped", "an hour comes twice"],
)
def test_a_balanced_pool_is_larger_from_the_evening_to_the_morning_of_that_night_alone(
    friday: datetime, night: str, opens: datetime, hours: int
) -> None:
    """F34. From Friday noon to Monday noon, by the minute. A job that waits for a second worker begins when the night
    does, and those that run when it is over go on."""
    clock, gauge, witness = VirtualClock(friday), Gauge(), Witness()
    queue = memory(clock=clock, lease=1_000_000)
    schedule = Schedule({night: Hours(min=2, max=2)}, zone="Europe/Paris")
    balance = Balance(min=1, max=1, heartbeat=1_000_000.0, sleep_interval=0.0)
    pool = Pool(queue, gauge.handler(lambda _: 48 * 3600), balance=balance, schedule=schedule, listener=witness)
    larger: list[datetime] = []
    second: datetime | None = None

    async def story() -> None:
        nonlocal second
        queue.enqueue_many([Job(), Job()])
        await asyncio.sleep(0.5)  # each look is half a second after the minute
        for _ in range(3 * 24 * 60):
            if pool.health().active == 2:
                larger.append(clock.now())
            if second is None and gauge.now == 2:
                second = clock.now()
            await asyncio.sleep(60)

    in_virtual_time(pool, story, clock)
    assert (larger[0] - opens).total_seconds() == 0.5
    assert (larger[-1] - larger[0]).total_seconds() == hours * 3600 - 60
    assert len(larger) == hours * 60
    assert second == larger[0]
    assert larger[-1].astimezone(PARIS).strftime("%H:%M") == "05:59"
    assert gauge.most == 2
    assert set(gauge.starts.values()) == {1}
    assert witness.verdicts()[:1] == ["acked"]


def test_a_pool_tells_its_schedule_and_the_limits_outside_of_it() -> None:
    schedule = Schedule({"08:00-12:00": Hours(min=5, max=5)})
    assert Pool(memory(), fine).schedule is None
    assert Pool(memory(), fine).balance is None
    pool = Pool(memory(), fine, balance=Balance(min=1, max=4), schedule=schedule)
    assert (pool.schedule, pool.balance) == (schedule, Balance(min=1, max=4))
    pool.resize(max=6)
    assert pool.balance == Balance(min=1, max=6)
    fixed = Pool(memory(), fine, workers=3, schedule=schedule)
    assert fixed.balance == Balance(min=3, max=3)
