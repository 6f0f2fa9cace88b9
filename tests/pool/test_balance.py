"""How many workers there should be: a table of cases, and what holds for every crew and every load."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.clock import SECOND
from headrace.errors import ConfigError
from headrace.pool.balance import Balance, Crew, Limits, Load, Move, calibrate

NOW = 1_000 * SECOND
LONG_AGO = NOW - 5 * SECOND
JUST_NOW = LONG_AGO + 1
BALANCE = Balance(min=2, max=8)


def load(size: int, ready: int | None = None, **more: Any) -> Load:
    return Load(size=size, capacity=100, ready=size if ready is None else ready, **more)


def move(crew: Crew, work: Load, balance: Balance = BALANCE, limits: Limits | None = None, now: int = NOW) -> Move:
    return calibrate(balance, limits or balance.limits, crew, work, now)


def figures(made: Move) -> tuple[int, int, int, int]:
    return made.wake, made.start, made.sleep, made.stop


def after(crew: Crew, made: Move, now: int, demand: int = 0) -> Crew:
    """The crew once a move is made, with ``demand`` jobs that run wherever an active worker takes them."""
    asleep = crew.asleep[: len(crew.asleep) - made.wake] + (now,) * made.sleep
    active = crew.active + made.wake + made.start - made.sleep
    return Crew(active, asleep[made.stop :], min(active, demand))


@pytest.mark.parametrize(
    ("crew", "work", "expected"),
    [
        pytest.param(Crew(2, (), 2), load(74), (0, 0, 0, 0), id="below the wakeup factor nobody wakes"),
        pytest.param(Crew(2, (), 2), load(75), (0, 2, 0, 0), id="at the wakeup factor as many again start"),
        pytest.param(Crew(3, (JUST_NOW,) * 4, 3), load(80), (3, 0, 0, 0), id="who sleeps is woken first"),
        pytest.param(Crew(3, (JUST_NOW,), 3), load(80), (1, 2, 0, 0), id="and new ones make up the rest"),
        pytest.param(Crew(6, (), 6), load(80), (0, 2, 0, 0), id="never above the maximum"),
        pytest.param(Crew(6, (JUST_NOW, JUST_NOW), 6), load(80), (2, 0, 0, 0), id="those asleep count towards it"),
        pytest.param(Crew(8, (), 8), load(99), (0, 0, 0, 0), id="at the maximum nothing is left to do"),
        pytest.param(Crew(4, (), 3), load(80, 1), (0, 0, 0, 0), id="an idle worker will take the ready job"),
        pytest.param(Crew(8, (), 5), load(80, 1), (0, 0, 0, 0), id="so will one of three, and the others stay"),
        pytest.param(Crew(4, (), 3), load(80, 2), (0, 1, 0, 0), id="one ready job too many starts one worker"),
        pytest.param(Crew(4, (), 4), load(80, 0), (0, 0, 0, 0), id="delayed jobs start nobody"),
        pytest.param(Crew(8, (), 0), load(80, 0), (0, 0, 4, 0), id="and keep nobody awake"),
        pytest.param(Crew(8, (), 0), load(51, 1), (0, 0, 0, 0), id="above the sleep factor nobody falls asleep"),
        pytest.param(Crew(8, (), 0), load(50, 1), (0, 0, 4, 0), id="at the sleep factor half fall asleep"),
        pytest.param(Crew(3, (), 0), load(0), (0, 0, 1, 0), id="half of three is one, and the minimum is left"),
        pytest.param(Crew(2, (), 0), load(0), (0, 0, 0, 0), id="never below the minimum"),
        pytest.param(Crew(8, (), 7), load(7, 0), (0, 0, 1, 0), id="only the idle fall asleep"),
        pytest.param(Crew(8, (), 8), load(8, 0), (0, 0, 0, 0), id="the busy never do"),
        pytest.param(Crew(8, (), 4), load(7, 3), (0, 0, 1, 0), id="nor who is about to have something to do"),
        pytest.param(Crew(2, (LONG_AGO, JUST_NOW), 0), load(0), (0, 0, 0, 1), id="who slept for the interval stops"),
        pytest.param(Crew(4, (LONG_AGO,), 4), load(80), (1, 3, 0, 0), id="but a woken one does not"),
        pytest.param(Crew(1, (), 1), load(5, 4), (0, 1, 0, 0), id="too few are made up"),
        pytest.param(Crew(0, (JUST_NOW,), 0), load(0), (1, 1, 0, 0), id="at an empty queue as well"),
        pytest.param(Crew(10, (), 0), load(60, 55), (0, 0, 2, 2), id="too many idle ones stop at once"),
        pytest.param(Crew(10, (), 9), load(60, 55), (0, 0, 2, 1), id="a busy one is sent to sleep and stops later"),
        pytest.param(Crew(8, (JUST_NOW,), 9), load(60, 55), (0, 0, 0, 0), id="not while its job runs"),
        pytest.param(Crew(8, (JUST_NOW,), 8), load(60, 55), (0, 0, 0, 1), id="but as soon as it is done"),
        pytest.param(Crew(4, (LONG_AGO,), 0), load(0, closed=True), (0, 0, 4, 5), id="closed and empty: all stop"),
        pytest.param(Crew(4, (), 1), load(0, closed=True), (0, 0, 3, 3), id="but for the one that still runs"),
        pytest.param(Crew(4, (), 4), load(80, closed=True), (0, 4, 0, 0), id="closed, but not empty: as ever"),
    ],
)
def test_what_a_crew_does_about_its_load(crew: Crew, work: Load, expected: tuple[int, int, int, int]) -> None:
    assert figures(move(crew, work)) == expected


def test_a_sleep_threshold_limits_how_many_fall_asleep_at_once() -> None:
    balance = Balance(min=0, max=100, sleep_threshold=3)
    assert move(Crew(40), load(0), balance).sleep == 3
    assert move(Crew(4), load(0), balance).sleep == 2, "half, where that is less"


def test_a_pool_without_a_minimum_goes_to_sleep_entirely_and_wakes_for_the_first_job() -> None:
    balance = Balance(min=0, max=8)
    assert figures(move(Crew(1), load(0), balance)) == (0, 0, 1, 0)
    assert figures(move(Crew(0, (JUST_NOW,)), load(1), balance)) == (1, 0, 0, 0)
    assert figures(move(Crew(0), load(1), balance)) == (0, 1, 0, 0)
    assert figures(move(Crew(1), load(1), balance)) == (0, 0, 0, 0), "it stays for the job"


def test_throttled_is_a_full_queue_with_everybody_up() -> None:
    assert move(Crew(8, (), 8), load(100)).throttled
    assert not move(Crew(8, (), 8), load(99)).throttled
    assert not move(Crew(7, (), 7), load(100)).throttled


def test_other_limits_hold_from_the_next_calibration() -> None:
    crew = Crew(4, (JUST_NOW, JUST_NOW), 4)
    assert figures(move(crew, load(60), limits=Limits(7, 9))) == (2, 1, 0, 0)
    assert figures(move(crew, load(60), limits=Limits(1, 4))) == (0, 0, 0, 2)
    assert figures(move(crew, load(60), limits=Limits(1, 3))) == (0, 0, 1, 2), "the busy one stops when it is done"
    assert move(crew, load(60), limits=Limits(1, 9, 0.5, 0.1)).wake == 2


def test_from_one_worker_to_the_maximum_takes_as_many_beats_as_back() -> None:
    balance = Balance(min=1, max=32)
    crew, up = Crew(1, (), 1), 0
    while crew.active < 32:
        crew, up = after(crew, move(crew, load(90), balance), NOW, 90), up + 1
    crew, down = Crew(32), 0
    while crew.active > 1:
        crew, down = after(crew, move(crew, load(0), balance), NOW), down + 1
    assert (up, down) == (5, 5)


@pytest.mark.parametrize(
    ("crew", "work", "words"),
    [
        (Crew(2, (), 2), load(75), "fullness 0.75 >= 0.75"),
        (Crew(8), load(10, 1), "fullness 0.1 <= 0.5, or nothing is ready"),
        (Crew(1), load(10, 1), "at least 2"),
        (Crew(9, (), 9), load(60), "at most 8"),
        (Crew(8, (JUST_NOW,), 8), load(60), "at most 8"),
        (Crew(2, (LONG_AGO,), 2), load(10), "asleep for long enough"),
        (Crew(2), load(0, closed=True), "the queue is closed and empty"),
    ],
)
def test_every_move_says_why(crew: Crew, work: Load, words: str) -> None:
    made = move(crew, work)
    assert made.any
    assert made.reason == words


def test_a_goal_decides_instead_of_fullness_and_says_why() -> None:
    balance = Balance(min=1, max=50, target_age=2.0)
    made = move(Crew(5, (), 5), load(10, 5, arrival_rate=20.0, service_time=0.7), balance)
    assert (made.start, made.reason) == (15, "20 jobs/s of 0.7 s")
    assert not move(Crew(20, (), 14), load(14, 0, arrival_rate=20.0, service_time=0.7), balance).any
    made = move(Crew(30, (), 14), load(14, 0, arrival_rate=20.0, service_time=0.7), balance)
    assert (made.sleep, made.reason) == (10, "20 jobs/s of 0.7 s")


def test_of_fullness_and_goal_the_one_that_asks_for_more_counts() -> None:
    balance = Balance(min=1, max=50, target_age=2.0)
    made = move(Crew(4, (), 4), load(80, 76, arrival_rate=7.0, service_time=0.5), balance)
    assert (made.start, made.reason) == (34, "76 ready jobs of 0.5 s, to begin within 2 s")
    made = move(Crew(4, (), 4), load(80, 76, arrival_rate=7.0, service_time=0.05), balance)
    assert (made.start, made.reason) == (4, "fullness 0.8 >= 0.75")


def test_a_goal_that_is_far_away_does_not_let_the_queue_run_full() -> None:
    balance = Balance(min=1, max=50, target_age=3600.0)
    crew = Crew(4, (), 4)
    made = move(crew, load(75, 71, arrival_rate=1.0, service_time=1.0), balance)
    assert (made.start, made.reason) == (4, "fullness 0.75 >= 0.75")
    assert not move(Crew(8, (), 3), load(60, 1, arrival_rate=1.0, service_time=1.0), balance).any
    assert move(Crew(8, (), 3), load(50, 1, arrival_rate=1.0, service_time=1.0), balance).sleep == 4


# -- for every crew and every load -------------------------------------------------------------------------------


@st.composite
def balances(draw: st.DrawFn) -> Balance:
    sleep, wakeup = sorted(draw(st.lists(st.floats(0, 0.999999), min_size=2, max_size=2)))
    most = draw(st.integers(1, 60))
    return Balance(
        min=draw(st.integers(0, most)),
        max=most,
        wakeup_factor=wakeup,
        sleep_factor=draw(st.sampled_from([sleep, wakeup])),
        sleep_threshold=draw(st.none() | st.integers(1, 20)),
        sleep_interval=draw(st.sampled_from([0.0, 0.5, 5.0])),
        target_age=draw(st.none() | st.floats(0.001, 100)),
    )


@st.composite
def crews(draw: st.DrawFn, most: int = 80) -> Crew:
    active = draw(st.integers(0, most))
    asleep = draw(st.lists(st.integers(NOW - 10 * SECOND, NOW), max_size=20).map(sorted))
    return Crew(active, tuple(asleep), draw(st.integers(0, active + len(asleep))))


@st.composite
def loads(draw: st.DrawFn) -> Load:
    ready = draw(st.integers(0, 100))
    return Load(
        size=draw(st.integers(ready, 100)),
        capacity=100,
        ready=ready,
        oldest_ready=draw(st.floats(0, 100)) if ready else 0.0,
        arrival_rate=draw(st.floats(0, 100)),
        service_time=draw(st.floats(0, 2)),
        share=draw(st.floats(0, 1)),
        closed=draw(st.booleans()),
    )


@given(balances(), crews(), loads())
def test_a_move_ends_within_the_limits_and_touches_nobody_who_works(balance: Balance, crew: Crew, work: Load) -> None:
    made = move(crew, work, balance)
    then = after(crew, made, NOW)
    assert min(made.wake, made.start, made.sleep, made.stop) >= 0
    assert made.wake <= len(crew.asleep)
    assert made.start == 0 or made.wake == len(crew.asleep), "nobody is started while somebody sleeps"
    assert not ((made.wake or made.start) and made.sleep)
    assert made.sleep <= crew.idle or then.active == balance.max, "only a lower maximum sends the busy to sleep"
    assert len(then.asleep) >= crew.busy - then.active, "and they stop when they are done"
    if not (work.closed and not work.size):
        assert balance.min <= then.active <= balance.max
        assert then.active > 0 or not work.ready
    still_busy = max(0, crew.busy - then.active)
    assert then.active + len(then.asleep) <= max(balance.max, then.active + still_busy)


@given(balances(), crews(), loads(), st.integers(0, 100))
def test_a_constant_load_comes_to_rest_and_stays_there(balance: Balance, crew: Crew, work: Load, demand: int) -> None:
    """Even one that could not be: ready jobs beside idle workers, as in a paused queue."""
    now = NOW
    crew = msgspec.structs.replace(crew, busy=min(crew.active, demand))
    last = 0
    for beat in range(200):
        made = move(crew, work, balance, now=now)
        if made.any:
            last = beat
        crew = after(crew, made, now, demand)
        now += SECOND
    assert last < 90


@given(balances(), crews(), loads(), st.integers(1, 50))
def test_more_jobs_never_mean_fewer_workers(balance: Balance, crew: Crew, work: Load, more: int) -> None:
    work = msgspec.structs.replace(work, closed=False)
    busier = msgspec.structs.replace(work, size=work.size + more, ready=work.ready + more)
    faster = msgspec.structs.replace(work, arrival_rate=work.arrival_rate + more)
    older = msgspec.structs.replace(work, oldest_ready=work.oldest_ready + more)
    now = after(crew, move(crew, work, balance), NOW).active
    for other in (busier, faster, older):
        assert after(crew, move(crew, other, balance), NOW).active >= now


@given(balances(), crews())
def test_a_lower_maximum_is_reached_although_everybody_always_has_a_job(balance: Balance, crew: Crew) -> None:
    for _ in range(2):
        crew = after(crew, move(crew, load(100), balance), NOW, 1000)
    assert crew.active + len(crew.asleep) <= balance.max


# -- settings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"min": -1}, "balance: min: -1 is not a whole number from 0 to 100,000"),
        ({"min": 9}, "balance: min: 9 is more than max, 8; 0 <= min <= max"),
        ({"min": 0, "max": 0}, "balance: max: 0 is not a whole number from 1 to 100,000"),
        ({"min": True}, "balance: min: True is not a whole number from 0 to 100,000"),
        ({"max": 8.0}, "balance: max: 8.0 is not a whole number from 1 to 100,000"),
        ({"wakeup_factor": 1}, "balance: wakeup_factor: 1 is not a number from 0 to 0.999999"),
        ({"wakeup_factor": float("nan")}, "balance: wakeup_factor: nan is not a number from 0 to 0.999999"),
        ({"sleep_factor": -0.1}, "balance: sleep_factor: -0.1 is not a number from 0 to 0.999999"),
        ({"sleep_factor": "0.5"}, "balance: sleep_factor: '0.5' is not a number from 0 to 0.999999"),
        ({"wakeup_factor": 0.4}, "balance: wakeup_factor: 0.4 is less than sleep_factor, 0.5"),
        ({"sleep_threshold": 0}, "balance: sleep_threshold: 0 is not a whole number from 1 to 100,000"),
        ({"sleep_interval": -1}, "balance: sleep_interval: -1 is not a number of seconds from 0 to 3,153,600,000"),
        ({"heartbeat": 0}, "balance: heartbeat: 0 is not a number of seconds from 0.000001 to 3,153,600,000"),
        ({"force_calibration_limit": 0}, "balance: force_calibration_limit: 0 is not a whole number from 1 to "),
        ({"target_age": 0}, "balance: target_age: 0 is not a number of seconds from 0.000001 to 3,153,600,000"),
    ],
)
def test_a_bad_setting_is_refused_by_name_value_and_range(given_: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Balance(**{"min": 2, "max": 8, **given_})
    assert str(caught.value).startswith(words)


def test_limits_are_checked_like_settings() -> None:
    with pytest.raises(ConfigError, match=r"limits: min: 3 is more than max, 2"):
        Limits(3, 2)
    with pytest.raises(ConfigError, match=r"limits: wakeup_factor: 0\.1 is less than sleep_factor, 0.5"):
        Limits(1, 2, 0.1, 0.5)


def test_the_defaults_are_the_documented_ones() -> None:
    assert Balance(min=0, max=1).limits == Limits(0, 1, 0.75, 0.5)
    made = Balance(min=0, max=1)
    assert (made.sleep_threshold, made.sleep_interval, made.heartbeat) == (None, 5.0, 1.0)
    assert (made.force_calibration_limit, made.target_age) == (1000, None)


def test_a_queue_without_capacity_is_not_full() -> None:
    assert Load(size=3, capacity=0, ready=3).rate == 0.0
