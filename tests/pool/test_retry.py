"""The arithmetic of waiting: no attempt, however late, breaks it."""

from __future__ import annotations

import logging
import math
import random
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import check
from headrace.errors import ConfigError
from headrace.pool.retry import (
    DEFAULT,
    Constant,
    Exponential,
    Fibonacci,
    FromFunction,
    Jitter,
    Linear,
    Logarithmic,
    Polynomial,
    Quadratic,
    RetryPolicy,
    retries,
)

KINDS = [Constant, Linear, Quadratic, Polynomial, Logarithmic, Fibonacci]
bases = st.sampled_from([0, 0.001, 1, 60, 1e9]) | st.floats(0, check.LONGEST)
ceilings = st.sampled_from([0, 1, 3600, check.LONGEST]) | st.floats(0, check.LONGEST)
attempts = st.integers(1, 5000) | st.integers(1, 10**400)
draws = st.floats(0, 1, exclude_max=True)


@st.composite
def policies(draw: st.DrawFn, jitters: tuple[Jitter, ...] = tuple(Jitter)) -> RetryPolicy:
    common: dict[str, Any] = {
        "base": draw(bases),
        "ceiling": draw(ceilings),
        "jitter": draw(st.sampled_from(jitters)),
    }
    kind = draw(st.sampled_from([*KINDS, Exponential]))
    if kind is Exponential:
        common["factor"] = draw(st.sampled_from([1, 1.5, 2, 5, 10, 1000]) | st.floats(1, 1e6))
    if kind is Polynomial:
        common["degree"] = draw(st.floats(0, 100))
    return kind(**common)


@given(policies(), attempts, draws)
def test_every_delay_is_finite_and_within_the_ceiling(policy: RetryPolicy, attempt: int, drawn: float) -> None:
    delay = policy.delay(attempt, lambda: drawn)
    assert math.isfinite(delay)
    assert policy.ceiling is not None
    assert 0 <= delay <= policy.ceiling
    check.duration("delay", delay)


@given(policies((Jitter.NONE,)), attempts)
def test_without_jitter_a_delay_never_decreases(policy: RetryPolicy, attempt: int) -> None:
    assert policy.delay(attempt) <= policy.delay(attempt + 1)


@given(policies(), attempts, draws)
def test_each_jitter_keeps_to_its_range(policy: RetryPolicy, attempt: int, drawn: float) -> None:
    delay = policy.delay(attempt, lambda: drawn)
    whole = policy.undithered(attempt)
    match policy.jitter:
        case Jitter.NONE:
            assert delay == whole
        case Jitter.FULL:
            assert 0 <= delay <= whole
        case Jitter.EQUAL:
            assert whole / 2 <= delay <= whole
        case Jitter.DECORRELATED:
            low = policy.undithered(1)
            assert low <= delay <= max(low, min(policy.ceiling or 0, 3 * policy.undithered(attempt - 1)))


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Constant, [2, 2, 2, 2, 2, 2]),
        (Linear, [2, 4, 6, 8, 10, 12]),
        (Exponential, [2, 4, 8, 16, 32, 64]),
        (Quadratic, [2, 8, 18, 32, 50, 72]),
        (Polynomial, [2, 16, 54, 128, 250, 432]),
        (Fibonacci, [2, 2, 4, 6, 10, 16]),
        (Logarithmic, [2 * math.log2(n + 1) for n in range(1, 7)]),
    ],
)
def test_each_kind_follows_its_formula_from_the_first_attempt_on(
    policy: type[RetryPolicy], expected: list[float]
) -> None:
    made = policy(base=2, ceiling=1000, jitter="none")
    assert [made.delay(attempt) for attempt in range(1, 7)] == expected


def test_fibonacci_is_exact_as_far_as_a_float_can_be() -> None:
    before, now = 0, 1
    for attempt in range(1, 71):
        assert Fibonacci(base=1).growth(attempt) == now
        before, now = now, before + now


def test_the_default_doubles_from_a_tenth_of_a_second_to_half_a_minute() -> None:
    assert [DEFAULT.undithered(attempt) for attempt in (1, 2, 3, 9, 10, 5000)] == [
        0.1,
        0.2,
        0.4,
        25.6,
        30,
        30,
    ]
    assert DEFAULT.jitter is Jitter.FULL
    assert retries(None) is DEFAULT


def test_jitter_spreads_jobs_that_failed_together() -> None:
    uniform = random.Random(1).random
    buckets = Counter(int(Exponential(base=10).delay(1, uniform)) for _ in range(500))
    assert max(buckets.values()) <= 125


def test_a_base_that_the_default_ceiling_would_cut_is_refused() -> None:
    with pytest.raises(ConfigError, match="retry: base: 60 is more than 30 s"):
        Constant(base=60)
    assert Constant(base=60, ceiling=45, jitter="none").delay(1) == 45


def test_half_is_another_name_for_equal() -> None:
    assert Exponential(jitter="half").jitter is Jitter.EQUAL


@pytest.mark.parametrize("nonsense", [-1, math.nan, math.inf, None, "5", timedelta.max, 1e300, True])
def test_a_retry_function_that_returns_nonsense_is_replaced_and_told_once(
    nonsense: Any, caplog: pytest.LogCaptureFixture
) -> None:
    policy = FromFunction(lambda attempt: nonsense)
    with caplog.at_level(logging.WARNING):
        delays = [policy.delay(3, lambda: 0.5) for _ in range(2)]
    assert delays == [DEFAULT.delay(3, lambda: 0.5)] * 2
    assert len(caplog.records) == 1


def test_a_retry_function_that_raises_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    def broken(attempt: int) -> float:
        raise SystemExit(attempt)

    with caplog.at_level(logging.WARNING):
        assert FromFunction(broken).delay(2, lambda: 0.5) == DEFAULT.delay(2, lambda: 0.5)
    assert "SystemExit: 2" in caplog.text


def test_a_sound_retry_function_decides() -> None:
    assert retries(lambda attempt: attempt * 7).delay(3) == 21.0


def test_what_is_given_becomes_a_policy() -> None:
    policy = Linear(base=3)
    assert retries(policy) is policy
    assert retries("fibonacci") == Fibonacci()


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        (Constant, {"base": -1}),
        (Constant, {"base": math.nan}),
        (Constant, {"base": "1"}),
        (Constant, {"ceiling": math.inf}),
        (Constant, {"jitter": "some"}),
        (Exponential, {"factor": 0.5}),
        (Exponential, {"factor": "2"}),
        (Polynomial, {"degree": math.inf}),
        (Polynomial, {"degree": True}),
    ],
)
def test_a_bad_setting_is_refused_by_name(kind: type[RetryPolicy], bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"retry: {next(iter(bad))}: "):
        kind(**bad)


@pytest.mark.parametrize("bad", ["sometimes", 5, Exponential])
def test_what_is_no_policy_is_refused(bad: Any) -> None:
    with pytest.raises(ConfigError, match="retry: "):
        retries(bad)


def test_the_base_alone_is_no_kind() -> None:
    with pytest.raises(NotImplementedError):
        RetryPolicy().delay(1)
