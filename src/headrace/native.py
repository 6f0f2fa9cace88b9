"""Small things that the compiled core does in C, by a twin of this file that was written for it (``native.pyx``)."""

from __future__ import annotations

from threading import Lock as Gate

from .clock import Clock

__all__ = ["Gate", "Ticks", "same", "storable", "whole"]


class Ticks:
    """``steady()`` and ``wall()`` of a clock, in microseconds; ``roughly()`` is ``steady()``, but may be late by less
    than a second where that is cheaper."""

    __slots__ = ("roughly", "steady", "wall")

    def __init__(self, clock: Clock) -> None:
        self.roughly = self.steady = clock.steady
        self.wall = clock.wall


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
