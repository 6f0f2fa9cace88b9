"""A schedule as a picture: time runs to the right, the workers stand as blocks, each day has a band of its own.

What holds depends on what the clock on the wall shows, so that is the axis, on the days of a clock change too: a time
that comes twice is drawn once, for it is the same both times, and one that is skipped is crossed out. Nothing that is
drawn is a sample: a column shows the most of what holds in it, however short.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from math import ceil

import msgspec

from ..pool.balance import Balance, Limits
from ..pool.schedule import Schedule

MINUTES = 24 * 60
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
WIDTHS = (72, 48, 24)
"""Columns in a day: each a whole number of minutes."""
GUTTER = 6


class Marks(msgspec.Struct, frozen=True):
    """What the chart is drawn with."""

    least: str = "█"
    most: str = "░"
    skipped: str = "/"


PLAIN = Marks("#", ".", "/")
"""For a terminal without Unicode."""


class Day(msgspec.Struct, frozen=True):
    """A day by the clock on the wall."""

    date: date
    times: tuple[int, ...]
    """How often each minute comes: 1, but for the days of a clock change."""
    low: tuple[int, ...]
    """The highest ``min`` in each minute."""
    high: tuple[int, ...]

    @property
    def hours(self) -> float:
        return sum(self.times) / 60

    @property
    def note(self) -> str:
        """What is odd about the day; nothing for most."""
        notes = [f"{span} is skipped" for span in self.spans(0)] + [f"{span} comes twice" for span in self.spans(2)]
        return f"{self.hours:g} h: {', '.join(notes)}" if notes else ""

    def spans(self, times: int) -> list[str]:
        """From when to when minutes come that often: ``["02:00-03:00"]``."""
        edges = [
            at for at, (one, two) in enumerate(pairwise((-1, *self.times, -1))) if (one == times) != (two == times)
        ]
        return [f"{_clock(begin)}-{_clock(end)}" for begin, end in zip(edges[::2], edges[1::2], strict=True)]


def bounds(schedule: Schedule, first: date, days: int) -> tuple[datetime, datetime]:
    """From midnight to midnight in the schedule's zone, in UTC."""
    begin, end = (datetime.combine(day, time.min, schedule.zone).astimezone(UTC) for day in (first, first + days * DAY))
    return begin, end


def look(schedule: Schedule, balance: Balance, first: date, days: int) -> list[Day]:
    """Every minute of these days. All moments are asked, for no rule knows what every zone did to its clocks."""
    shown = {first + step * DAY: ([0] * MINUTES, [0] * MINUTES, [0] * MINUTES) for step in range(days)}
    begin, end = bounds(schedule, first, days)
    for at, limits in _moments(schedule, balance, begin - DAY, end + DAY):
        wall = at.astimezone(schedule.zone)
        if wall.date() in shown:
            times, low, high = shown[wall.date()]
            minute = wall.hour * 60 + wall.minute
            times[minute] += at.second == at.microsecond == 0
            low[minute] = max(low[minute], limits.min)
            high[minute] = max(high[minute], limits.max)
    return [Day(day, tuple(times), tuple(low), tuple(high)) for day, (times, low, high) in shown.items()]


def _moments(schedule: Schedule, balance: Balance, begin: datetime, end: datetime) -> Iterator[tuple[datetime, Limits]]:
    """Every full minute, and every moment at which the limits change."""
    for since, until, _ in schedule.walk(begin, end):
        limits = schedule.limits(balance, since)
        at = since
        while at < until:
            yield at, limits
            at = at.replace(second=0, microsecond=0) + MINUTE


def band(day: Day, top: int, height: int, columns: int, marks: Marks) -> list[str]:
    """The day's lines, from the top; ``top`` workers fill them all, and one worker is seen in any case."""
    width = MINUTES // columns
    cells = [slice(column * width, (column + 1) * width) for column in range(columns)]
    lines = []
    for row in range(height, 0, -1):
        line = ""
        for cell in cells:
            if not any(day.times[cell]):
                line += marks.skipped
            elif ceil(max(day.low[cell]) * height / top) >= row:
                line += marks.least
            else:
                line += marks.most if ceil(max(day.high[cell]) * height / top) >= row else " "
        label = str(top) if row == height else ""
        lines.append(f"{label:>{GUTTER - 1}} {line}".rstrip())
    return lines


def axis(columns: int) -> list[str]:
    """The foot of the chart: a tick and a figure each three hours."""
    step = columns // 8
    ticks = "".join(f"{3 * number:02}".ljust(step) for number in range(8))
    return [" " * GUTTER + ("|" + "-" * (step - 1)) * 8 + "|", f"{' ' * GUTTER}{ticks}24"]


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
