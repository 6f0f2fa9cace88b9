"""How long to wait before the next attempt: pure functions of the attempt, so that a table can test them.

Without jitter, everything that failed together comes back together. So the undithered delay
``d(n) = min(ceiling, base * growth(n))`` is only the middle step, and one of four jitters draws from it:

    full           uniform in [0, d(n)]                              the default
    equal (half)   uniform in [d(n) / 2, d(n)]
    decorrelated   uniform in [base, min(ceiling, 3 * d(n - 1))]     stateless: the original triples its own
                                                                     last draw, which no worker remembers
    none           d(n)

After Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015. Delays are in seconds; the
attempt counts from 1, and ``growth(1)`` is 1, so that the first retry waits like the others.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias

import msgspec

from .. import check
from ..errors import ConfigError
from ..text import describe

log = logging.getLogger(__name__)

Uniform: TypeAlias = Callable[[], float]
"""Draws from [0, 1)."""

_CEILING = 30.0
_PHI = (1 + math.sqrt(5)) / 2


class Jitter(StrEnum):
    """How a delay is spread. ``half`` is another name for ``equal``."""

    FULL = "full"
    EQUAL = "equal"
    DECORRELATED = "decorrelated"
    NONE = "none"

    @classmethod
    def _missing_(cls, value: object) -> Jitter | None:
        return cls.EQUAL if value == "half" else None


def _number(name: str, value: object, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise ConfigError(f"retry: {name}: {value!r} is not a number from {low:g} to {high:g}")


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The base: what all kinds share. A bad setting raises ConfigError."""

    base: float = 0.1
    """Seconds before the second attempt, before jitter."""
    ceiling: float | None = None
    """The longest delay, in seconds; at most 100 years. None: 30, and a longer base is refused, for it would be
    cut in silence."""
    jitter: Jitter | str = Jitter.FULL

    def __post_init__(self) -> None:
        check.duration("retry: base", self.base)
        ceiling = _CEILING if self.ceiling is None else self.ceiling
        check.duration("retry: ceiling", ceiling)
        if self.ceiling is None and self.base > ceiling:
            raise ConfigError(f"retry: base: {self.base!r} is more than {ceiling:g} s; give a ceiling as well")
        try:
            jitter = Jitter(self.jitter)
        except ValueError:
            names = ", ".join(Jitter)
            raise ConfigError(f"retry: jitter: {self.jitter!r} is none of {names}, half") from None
        msgspec.structs.force_setattr(self, "jitter", jitter)
        msgspec.structs.force_setattr(self, "ceiling", ceiling)

    def growth(self, attempt: float) -> float:
        """By how much the base has grown at this attempt: 1 at the first, never falling. May overflow."""
        raise NotImplementedError

    def undithered(self, attempt: int) -> float:
        """Seconds without jitter: finite, at most the ceiling, never less than for an earlier attempt."""
        assert self.ceiling is not None
        if self.base == 0:
            return 0.0  # else 0 * inf would be no number
        try:
            return min(float(self.ceiling), self.base * self.growth(float(max(attempt, 1))))
        except OverflowError:
            return float(self.ceiling)

    def delay(self, attempt: int, uniform: Uniform = random.random) -> float:
        """Seconds to wait after ``attempt`` (>= 1) failed: 0 <= delay <= ceiling, whatever the attempt."""
        high = self.undithered(attempt)
        if self.jitter is Jitter.NONE:
            return high
        low = 0.0
        if self.jitter is Jitter.EQUAL:
            low = high / 2
        elif self.jitter is Jitter.DECORRELATED:
            low = self.undithered(1)
            high = max(low, min(self.ceiling or 0.0, 3 * self.undithered(attempt - 1)))
        return min(high, low + (high - low) * uniform())  # rounding may overshoot by one bit


class Constant(RetryPolicy, frozen=True, kw_only=True):
    """base"""

    def growth(self, attempt: float) -> float:
        return 1.0


class Linear(RetryPolicy, frozen=True, kw_only=True):
    """base * n"""

    def growth(self, attempt: float) -> float:
        return attempt


class Exponential(RetryPolicy, frozen=True, kw_only=True):
    """base * factor ** (n - 1)"""

    factor: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _number("factor", self.factor, 1.0, 1e6)

    def growth(self, attempt: float) -> float:
        return float(self.factor ** (attempt - 1))


class Polynomial(RetryPolicy, frozen=True, kw_only=True):
    """base * n ** degree"""

    degree: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _number("degree", self.degree, 0.0, 100.0)

    def growth(self, attempt: float) -> float:
        return float(attempt**self.degree)


class Quadratic(RetryPolicy, frozen=True, kw_only=True):
    """base * n ** 2"""

    def growth(self, attempt: float) -> float:
        return attempt * attempt


class Logarithmic(RetryPolicy, frozen=True, kw_only=True):
    """base * log2(n + 1)"""

    def growth(self, attempt: float) -> float:
        return math.log2(attempt + 1)


class Fibonacci(RetryPolicy, frozen=True, kw_only=True):
    """base * F(n), with F = 1, 1, 2, 3, 5, 8, ...

    By Binet's formula, which a float carries exactly up to F(70) and in proportion beyond; a table would end.
    """

    def growth(self, attempt: float) -> float:
        return float(math.floor(_PHI**attempt / math.sqrt(5) + 0.5))


class FromFunction:
    """A caller's own function of the attempt, in seconds. Whatever it does, the job is retried: where it
    raises, or returns anything but a number from 0 to 100 years, the default policy's delay is used and the
    trouble is logged, once."""

    def __init__(self, function: Callable[[int], float]) -> None:
        self._function = function
        self._told = False

    def delay(self, attempt: int, uniform: Uniform = random.random) -> float:
        try:
            seconds = self._function(attempt)
            check.duration("delay", seconds)
        except BaseException as error:
            # BaseException: the caller's code runs here in the pool's own task, which must outlive it.
            if not self._told:
                self._told = True
                log.warning(
                    "retry function for attempt %d: %.500s; the default policy is used instead",
                    attempt,
                    describe(error),
                )
            return DEFAULT.delay(attempt, uniform)
        return float(seconds)


Retries: TypeAlias = RetryPolicy | FromFunction
DEFAULT = Exponential()
"""0.1 s, doubling up to 30 s, with full jitter."""

_KINDS: dict[str, type[RetryPolicy]] = {
    kind.__name__.lower(): kind
    for kind in (Constant, Linear, Exponential, Quadratic, Polynomial, Logarithmic, Fibonacci)
}


def retries(given: RetryPolicy | FromFunction | Callable[[int], float] | str | None) -> Retries:
    """A policy from what a caller may give: a policy, its kind's name, a function, None for the default."""
    if given is None:
        return DEFAULT
    if isinstance(given, (RetryPolicy, FromFunction)):
        return given
    if isinstance(given, str) and given in _KINDS:
        return _KINDS[given]()
    if callable(given) and not isinstance(given, type):
        return FromFunction(given)
    raise ConfigError(f"retry: {given!r} is no retry policy, no function (attempt) -> seconds, and none of "
                      f"{', '.join(_KINDS)}")  # fmt: skip
