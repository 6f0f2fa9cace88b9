"""The roster does what the rules say, and its figures stay possible; what the foreman measures is what comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pool_kit import memory

from headrace.job import Job
from headrace.pool import Balance, Balanced, Load, Move
from headrace.pool.balance import calibrate
from headrace.pool.crew import Foreman, Roster
from headrace.queue import Queue
from headrace.testing.clock import VirtualClock, run_virtual


def test_the_last_to_fall_asleep_wakes_first_and_the_longest_asleep_stops_first() -> None:
    roster = Roster(4)
    roster.do(Move(sleep=1), 10)
    roster.do(Move(sleep=2), 20)
    assert (roster.active, roster.asleep) == (1, [10, 20, 20])
    roster.do(Move(wake=1), 30)
    assert (roster.active, roster.asleep) == (2, [10, 20])
    roster.do(Move(start=3, stop=1), 40)
    assert (roster.active, roster.asleep) == (5, [20])


def test_a_worker_may_be_sent_to_sleep_and_stopped_in_one_move() -> None:
    roster = Roster(3)
    roster.do(Move(sleep=2, stop=2), 10)
    assert (roster.active, roster.asleep, roster.size) == (1, [], 1)


def test_a_fixed_number_leaves_nobody_asleep() -> None:
    roster = Roster(3)
    roster.do(Move(sleep=2), 10)
    roster.set(5)
    assert (roster.active, roster.size) == (5, 5)


@given(
    st.integers(0, 3),
    st.integers(3, 9),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12), st.integers(0, 2_000_000)), max_size=60),
)
def test_whatever_comes_the_size_stays_between_its_limits(
    low: int, high: int, steps: list[tuple[int, int, int]]
) -> None:
    balance = Balance(min=low, max=high, sleep_interval=1.0)
    roster, now, busy = Roster(low), 0, 0
    for ready, ended, passed in steps:
        now += passed
        busy = max(0, busy - ended)
        busy += max(0, min(ready, roster.active - busy))  # a pool fetches for its active workers only
        left = ready
        load = Load(size=min(40, left + busy), capacity=40, ready=left)
        roster.do(calibrate(balance, balance.limits, roster.seen(busy), load, now), now)
        assert low <= roster.active <= roster.size <= high
        assert busy <= roster.size, "whoever works is there"
        assert roster.asleep == sorted(roster.asleep)


def failing(queue: Queue) -> None:
    for job in queue.dequeue_many(10, 0):
        queue.nack(job)


def forgotten(queue: Queue) -> None:
    queue.dequeue_many(10, 0)  # until its lease of 1 s is over


def done_by_somebody_else(queue: Queue) -> None:
    queue.ack_many(queue.dequeue_many(10, 0))


@pytest.mark.parametrize(
    ("act", "rate", "share"),
    [
        pytest.param(failing, 3.0, 1.0, id="each comes three times"),
        pytest.param(forgotten, 4.0, 1.0, id="so it does where leases end, and the last end is counted with them"),
        pytest.param(done_by_somebody_else, 1.0, 0.15, id="or once"),
    ],
)
def test_whatever_becomes_ready_has_arrived_and_what_others_finish_is_theirs(
    act: Callable[[Queue], None], rate: float, share: float
) -> None:
    """One job a second, of which each is given three attempts. What dies is nobody's work, and so leaves the share."""
    clock, told = VirtualClock(), list[Balanced]()
    queue = memory(clock=clock, lease=1.0, max_attempts=3)
    balance = Balance(min=0, max=9, target_age=100.0)

    async def main() -> None:
        foreman = Foreman(queue.as_async, "", 1, balance, None, lambda: 0, lambda: None, told.append)

        async def work() -> None:
            while True:
                await foreman.round()

        working = asyncio.create_task(work())
        for _ in range(200):
            queue.enqueue(Job())
            for _ in range(3):
                act(queue)
                await asyncio.sleep(0.3)
            await asyncio.sleep(0.1)
            if act is failing:
                for _ in range(2):
                    foreman.ended(0.5)
        foreman.rebalance(Balance(min=5, max=9, target_age=100.0))  # so that it tells what it sees
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        working.cancel()

    run_virtual(main(), clock)
    load = told[-1].load
    assert load is not None
    assert load.arrival_rate == pytest.approx(rate, rel=0.1)
    assert load.share == pytest.approx(share, abs=0.01)
