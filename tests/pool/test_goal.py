"""How many workers a goal takes: three answers, of which the largest counts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.pool.goal import BUSY, LAZY, Need, need, workers


def asked(**load: Any) -> Need:
    known = {"rate": 0.0, "seconds": 0.0, "ready": 0, "oldest": 0.0, "active": 0, "busy": 0}
    return need(2.0, **{**known, **load})


@pytest.mark.parametrize(
    ("rate", "seconds", "expected"),
    [(0, 0, 0), (0, 1, 0), (7, 1, 10), (7.01, 1, 11), (7, 0.1, 1), (1, 0.5, 1), (100, 0.35, 50), (1e-9, 1, 0)],
)
def test_littles_law_at_seventy_per_cent(rate: float, seconds: float, expected: int) -> None:
    assert workers(rate, seconds) == expected


def test_workers_are_too_many_only_below_sixty_per_cent() -> None:
    assert asked(rate=42, seconds=1) == Need(60, 70, "42 jobs/s of 1 s")


@pytest.mark.parametrize(
    ("ready", "busy", "expected"),
    [
        pytest.param(100, 50, 50, id="to begin within half of the goal"),
        pytest.param(100, 0, 50, id="whoever is up"),
        pytest.param(1, 3, 1, id="one job, one worker"),
        pytest.param(0, 3, 0, id="no backlog, nobody for it"),
    ],
)
def test_the_backlog_is_to_begin_within_half_of_the_goal(ready: int, busy: int, expected: int) -> None:
    assert asked(seconds=0.5, ready=ready, active=busy, busy=busy).least == expected


def test_a_few_long_jobs_take_one_worker_each_and_no_more() -> None:
    assert asked(seconds=600.0, ready=3, active=2, busy=2).least == 5


def test_the_larger_of_law_and_backlog_counts_and_is_named() -> None:
    assert asked(rate=7, seconds=1, ready=5, active=5, busy=5) == Need(10, 12, "7 jobs/s of 1 s")
    assert asked(rate=7, seconds=1, ready=50, active=5, busy=5).reason == "50 ready jobs of 1 s, to begin within 2 s"


@pytest.mark.parametrize(
    ("oldest", "active", "expected"),
    [(0.99, 10, 0), (1.0, 10, 15), (1.0, 1, 2), (1.0, 0, 1), (30.0, 10, 15)],
)
def test_half_of_the_goal_gone_takes_half_as_many_again_whatever_the_rates_say(
    oldest: float, active: int, expected: int
) -> None:
    made = asked(ready=100, oldest=oldest, active=active, busy=active)
    assert made.least == expected
    assert made.reason.startswith("the oldest job has waited") == bool(expected)


def test_an_old_job_that_an_idle_worker_will_take_calls_for_nobody() -> None:
    """Its age counts from its first enqueue: a delayed job, or one that is retried, is old when it becomes ready."""
    assert asked(ready=1, oldest=3600.0, active=5, busy=4).least == 0
    assert asked(ready=1, oldest=3600.0, active=5, busy=5).least == 6, "and else for one"


def test_of_what_comes_and_of_what_waits_our_share_is_provided_for() -> None:
    assert asked(rate=42, seconds=1, share=0.5) == Need(30, 35, "50% of 42 jobs/s of 1 s")
    made = asked(seconds=0.5, ready=100, active=5, busy=5, share=0.25)
    assert (made.least, made.reason) == (13, "25% of 100 ready jobs of 0.5 s, to begin within 2 s")


@pytest.mark.parametrize(
    ("oldest", "expected"),
    [
        pytest.param(0.99, 6, id="while the goal is held, the others do theirs"),
        pytest.param(1.0, 9, id="half of it gone: half as many again"),
        pytest.param(1.5, 18, id="three quarters gone: half of what was left to others"),
        pytest.param(2.0, 30, id="missed: everything"),
        pytest.param(60.0, 30, id="and no more than that"),
    ],
)
def test_the_less_of_the_goal_is_left_the_less_is_left_to_others(oldest: float, expected: int) -> None:
    load = {"rate": 21, "seconds": 1, "ready": 30, "oldest": oldest, "active": 6, "busy": 6, "share": 0.2}
    assert need(20.0, **{**load, "oldest": 10 * oldest}).least == expected  # type: ignore[arg-type]


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=8), st.floats(0, 1e3), st.floats(0, 1e2))
def test_shares_that_make_a_whole_provide_for_the_whole(parts: list[float], rate: float, seconds: float) -> None:
    shares = [part / sum(parts) for part in parts]
    assert sum(asked(rate=rate, seconds=seconds, share=share).least for share in shares) >= workers(rate, seconds) - 1


@given(
    st.floats(0.001, 1000),
    st.floats(0, 1e6),
    st.floats(0, 1e4),
    st.integers(0, 10**6),
    st.floats(0, 1e6),
    st.integers(0, 1000),
    st.data(),
)
def test_what_is_needed_is_finite_and_in_order(
    target: float, rate: float, seconds: float, ready: int, oldest: float, active: int, data: st.DataObject
) -> None:
    busy = data.draw(st.integers(0, active))
    small, large = sorted((data.draw(st.floats(0, 1)), data.draw(st.floats(0, 1))))
    load: dict[str, Any] = {"rate": rate, "seconds": seconds, "ready": ready, "oldest": oldest}
    made = need(target, **load, active=active, busy=busy, share=large)
    fewer = need(target, **load, active=active, busy=busy, share=small)
    assert fewer.least <= made.least
    assert fewer.most <= made.most
    assert 0 <= made.least <= made.most
    assert made.least <= max(workers(rate, seconds), busy + ready), "nobody without a job, but for what is to come"
    assert made.reason


def test_there_is_room_between_up_and_down() -> None:
    assert 0 < LAZY < BUSY < 1
