"""Queue time: a line that never steps, and its distance from the calendar.

A queue measures everything on its own line, which runs with the steady clock and agreed with the calendar when
the queue was made. ``skew`` is how far the calendar has stepped away since. A step therefore moves no lease, no
delay and no age; only what was asked for by calendar (``run_at``, ``deadline``) follows the calendar, and a
moment that is shown to somebody is shown in today's calendar.
"""

from __future__ import annotations

from .clock import FAR, SECOND, Clock
from .native import Ticks

TOLERANCE = SECOND
"""Drift below this is slewing, which the steady clock shares; more is a step."""


class Timeline:
    """``now()`` in queue time; ``stepped()`` tells by how much the calendar has moved away since ``skew`` was set."""

    __slots__ = ("_look_again", "_ticks", "anchor", "skew")

    def __init__(self, clock: Clock) -> None:
        self._ticks = Ticks(clock)
        self.anchor = clock.wall() - clock.steady()
        self.skew = 0
        self._look_again = -FAR

    def now(self) -> int:
        return self._ticks.steady() + self.anchor

    def roughly(self) -> int:
        """``now()``, late by less than a second where that is cheaper: for what is decided long before or after."""
        return self._ticks.roughly() + self.anchor

    def stepped(self, now: int) -> int:
        """Microseconds that the wall clock has stepped forward (or back, negative)."""
        if now < self._look_again:
            return 0
        change = step(self._ticks.wall(), now, self.skew)
        if not change:  # one that was seen is seen until ``skew`` has it
            self._look_again = now + self._ticks.fresh
        return change


def step(wall: int, now: int, skew: int) -> int:
    """By how much the calendar has stepped: its distance from ``now + skew``, when that is no mere drift."""
    change = wall - now - skew
    return change if change > TOLERANCE or change < -TOLERANCE else 0
