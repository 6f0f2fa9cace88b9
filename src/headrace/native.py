"""Small things that the compiled core does in C, by a twin of this file that was written for it (``native.pyx``)."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock as Gate
from typing import Any

from .clock import Clock, SystemClock

__all__ = ["Gate", "Ticks", "own", "same", "storable", "whole"]


class Ticks:
    """``steady()`` and ``wall()`` of a clock, in microseconds; ``roughly()`` is ``steady()``, but may be late by less
    than a second where that is cheaper."""

    __slots__ = ("fresh", "roughly", "steady", "wall")

    def __init__(self, clock: Clock) -> None:
        self.roughly = self.steady = clock.steady
        self.wall = clock.wall
        self.fresh = 1000 if type(clock) is SystemClock else 0
        """For so many microseconds a look at the calendar holds; a virtual one is moved between two calls."""


def own(kind: type, method: Callable[..., Any]) -> Callable[..., Any]:
    """A base's method, as one of ``kind`` itself: Python calls a compiled one in its shortest way only where it belongs
    to the very class of the object."""
    return method


def same(number: int, given: object) -> bool:
    """Whether ``given`` is that number."""
    return number == given


def whole(given: object, least: int, most: int) -> bool:
    """Whether ``given`` is a whole number from ``least`` to ``most``."""
    return type(given) is int and least <= given <= most


def storable(name: str) -> bool:
    """Whether any store can keep the text: no NUL in it, and nothing that UTF-8 cannot say."""
    if name.isascii():
        return "\0" not in name
    try:
        return b"\0" not in name.encode()
    except UnicodeEncodeError:
        return False
