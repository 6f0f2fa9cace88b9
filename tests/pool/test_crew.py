"""The roster does what the rules say, and its figures stay possible."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.pool import Balance, Load, Move
from headrace.pool.balance import calibrate
from headrace.pool.crew import Roster


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
