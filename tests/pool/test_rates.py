"""What is measured: the truth where it stands still, and soon where it moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.clock import SECOND
from headrace.errors import ConfigError
from headrace.pool.rates import Rates


def steady(rates: Rates, begin: int, seconds: int, came: int, each: float, totals: list[float]) -> None:
    """``came`` jobs a second, all settled within it, of ``each`` seconds."""
    for second in range(begin, begin + seconds):
        rates.feed(second * SECOND, int(totals[0]), int(totals[1]), totals[2])
        totals[0] += came
        totals[1] += came
        totals[2] += came * each


def test_nothing_is_known_before_two_readings() -> None:
    rates = Rates()
    assert (rates.arrival_rate, rates.service_time) == (0.0, 0.0)
    rates.feed(0, 1_000_000, 500_000, 1e6)
    assert (rates.arrival_rate, rates.service_time) == (0.0, 0.0), "what was there before says nothing of now"


def test_the_second_reading_is_already_unbiased() -> None:
    rates = Rates()
    rates.feed(0, 100, 40, 10.0)
    rates.feed(SECOND, 130, 50, 15.0)
    assert rates.arrival_rate == pytest.approx(30.0)
    assert rates.service_time == pytest.approx(0.5)


@given(st.lists(st.integers(1, 10 * SECOND), min_size=1, max_size=50), st.integers(1, 1000), st.floats(0.001, 100))
def test_a_constant_load_is_measured_exactly_at_any_intervals(gaps: list[int], per_gap: int, each: float) -> None:
    rates = Rates()
    now = came = 0
    rates.feed(0, 0, 0, 0.0)
    for gap in gaps:
        now += gap * per_gap
        came += gap  # one job every per_gap microseconds
        rates.feed(now, came, came, came * each)
    assert rates.arrival_rate == pytest.approx(SECOND / per_gap)
    assert rates.service_time == pytest.approx(each, rel=1e-6)


def test_a_change_is_followed_by_two_thirds_within_its_time() -> None:
    rates, totals = Rates(arrivals=10.0), [0.0, 0.0, 0.0]
    steady(rates, 0, 100, 10, 0.5, totals)
    steady(rates, 100, 11, 20, 0.5, totals)
    assert 10 + 0.6 * 10 < rates.arrival_rate < 10 + 0.66 * 10
    steady(rates, 111, 60, 20, 0.5, totals)
    assert rates.arrival_rate == pytest.approx(20, rel=0.01)


def test_service_time_is_followed_by_two_thirds_within_its_time() -> None:
    rates, totals = Rates(service=60.0), [0.0, 0.0, 0.0]
    steady(rates, 0, 400, 10, 0.5, totals)
    steady(rates, 400, 61, 10, 2.0, totals)
    assert 0.5 + 0.6 * 1.5 < rates.service_time < 0.5 + 0.66 * 1.5
    steady(rates, 461, 300, 10, 2.0, totals)
    assert rates.service_time == pytest.approx(2.0, rel=0.02)


def test_a_quiet_night_forgets_the_arrivals_but_not_how_long_a_job_takes() -> None:
    rates, totals = Rates(), [0.0, 0.0, 0.0]
    steady(rates, 0, 100, 10, 0.5, totals)
    steady(rates, 100, 10_000, 0, 0.0, totals)
    assert rates.arrival_rate < 1e-9
    assert rates.service_time == pytest.approx(0.5)
    steady(rates, 10_100, 1, 1, 100.0, totals)
    steady(rates, 10_101, 1, 0, 0.0, totals)
    assert 0.5 < rates.service_time < 1.0, "one odd job in the morning does not outweigh all of yesterday's"


def test_readings_in_the_same_moment_lose_nothing() -> None:
    rates = Rates()
    rates.feed(0, 0, 0, 0.0)
    rates.feed(0, 10, 10, 1.0)
    rates.feed(0, 20, 20, 2.0)
    rates.feed(SECOND, 20, 20, 2.0)
    assert rates.arrival_rate == pytest.approx(20.0)
    assert rates.service_time == pytest.approx(0.1)


@pytest.mark.parametrize("totals", [(5, 100, 100.0), (200, 5, 100.0), (200, 100, 5.0)])
def test_totals_that_go_back_begin_anew_and_spoil_nothing(totals: tuple[int, int, float]) -> None:
    rates = Rates()
    rates.feed(0, 0, 0, 0.0)
    rates.feed(SECOND, 100, 50, 25.0)
    rates.feed(2 * SECOND, *totals)
    assert rates.arrival_rate == pytest.approx(100.0)
    assert rates.service_time == pytest.approx(0.5)
    came, done, ran = totals
    rates.feed(3 * SECOND, came + 100, done + 50, ran + 25.0)
    assert rates.arrival_rate == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("phases", "low", "high"),
    [
        pytest.param([], 1.0, 1.0, id="nothing known"),
        pytest.param([(60, 10, 10)], 1.0, 1.0, id="nobody else"),
        pytest.param([(60, 10, 9)], 1.0, 1.0, id="some of ours ended in a way that is not counted"),
        pytest.param([(300, 10, 20)], 0.5, 0.51, id="half"),
        pytest.param([(300, 1, 20)], 0.05, 0.06, id="a twentieth"),
        pytest.param([(300, 0, 20)], 0.0, 0.01, id="none"),
        pytest.param([(10, 0, 1)], 0.5, 0.55, id="ten jobs of others are no proof yet"),
        pytest.param([(300, 10, 20), (30, 10, 10)], 0.61, 0.64, id="the other died half a minute ago"),
        pytest.param([(300, 10, 20), (180, 10, 10)], 0.95, 1.0, id="three minutes ago"),
        pytest.param([(300, 20, 20), (60, 10, 20)], 0.66, 0.70, id="another came a minute ago"),
        pytest.param([(300, 10, 20), (10, 0, 0)], 0.5, 0.52, id="a lull says nothing of who is there"),
        pytest.param([(300, 10, 20), (3600, 0, 0)], 0.99, 1.0, id="an hour later nobody knows any more"),
    ],
)
def test_our_share_is_what_we_do_of_all_that_is_done(
    phases: list[tuple[int, int, int]], low: float, high: float
) -> None:
    rates, now, ours, everyones = Rates(), 0, 0, 0
    rates.feed(0, 0, 0, 0.0, 0)
    for seconds, of_us, of_all in phases:
        for _ in range(seconds):
            now, ours, everyones = now + SECOND, ours + of_us, everyones + of_all
            rates.feed(now, 0, ours, 0.0, everyones)
    assert low <= rates.share <= high


def test_everyones_total_that_goes_back_begins_anew_and_spoils_nothing() -> None:
    rates = Rates()
    for second, everyone in enumerate([0, 1000, 2000, 10, 1010, 2010]):
        rates.feed(second * SECOND, 0, second * 500, 0.0, everyone)
    assert rates.share == pytest.approx(0.5, rel=0.01)


def test_a_time_constant_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="arrivals: 0 is not a number of seconds"):
        Rates(arrivals=0)
    with pytest.raises(ConfigError, match="service: -1 is not a number of seconds"):
        Rates(service=-1)
