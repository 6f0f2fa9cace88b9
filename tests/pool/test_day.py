"""A simulated hour and a half with a burst in it: what each way of sizing a pool costs, and whether it holds the goal.

The whole day is ``python -m benchmarks.day``; this is its program on a piece of the same day.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.clock import SECOND
from headrace.pool.balance import Balance


@pytest.fixture(scope="module")
def day() -> Any:
    return SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "day.py")))


@pytest.fixture(scope="module")
def evening(day: Any) -> Any:
    return day.trace(begin=20.0, hours=1.5)


def test_balanced_by_goal_the_goal_is_held_with_fewer_worker_hours_than_any_other_way_of_holding_it(
    day: Any, evening: Any
) -> None:
    by_goal, fixed = day.by_goal(evening), day.smallest(evening)
    by_fullness = day.balanced("tuned", evening, day.by_jobs(1, 0, 1, 1))
    assert by_goal.held
    assert fixed.held
    assert by_fullness.held
    assert by_goal.worker_hours < by_fullness.worker_hours < fixed.worker_hours
    assert by_goal.worker_hours < 0.8 * fixed.worker_hours
    assert by_goal.moves < by_fullness.moves / 10


def test_fullness_knows_nothing_of_ages_and_lets_them_grow_until_the_queue_is_three_quarters_full(
    day: Any, evening: Any
) -> None:
    made = day.by_fullness(evening)
    assert not made.held
    assert made.p99 > 60


def test_the_smallest_fixed_pool_is_the_smallest(day: Any, evening: Any) -> None:
    size = day.smallest(evening).most
    assert not day.fixed(evening, size - 1).held


def test_the_same_seed_makes_the_same_day_and_the_same_decisions(day: Any) -> None:
    first, again = (day.by_goal(day.trace(seed=7, begin=3.0, hours=0.5)) for _ in range(2))
    assert first == again
    assert first != day.by_goal(day.trace(seed=8, begin=3.0, hours=0.5))


@pytest.mark.parametrize("every", [0.037, 0.05, 0.1, 0.26, 0.9])
@pytest.mark.parametrize("took", [0.02, 0.3, 1.7])
def test_a_load_that_stands_still_is_soon_served_without_a_move(day: Any, every: float, took: float) -> None:
    """Balanced by goal, with arrivals and service times like clockwork: the second half of an hour has no moves."""

    def moves(hours: float) -> int:
        arrivals = list(range(0, round(hours * 3600 * SECOND), round(every * SECOND)))
        steady = day.Trace(arrivals, [round(took * SECOND)] * len(arrivals), round(hours * 3600 * SECOND))
        row = day.balanced("", steady, Balance(min=1, max=200, target_age=2.0))
        assert row.over < 0.002
        return int(row.moves)

    assert moves(1.0) == moves(0.5)


def test_a_fixed_pool_balanced_between_equal_limits_is_the_fixed_pool(day: Any, evening: Any) -> None:
    """The two simulations are written differently and agree."""
    fixed = day.fixed(evening, 20)
    assert day.balanced(fixed.name, evening, Balance(min=20, max=20)) == fixed
