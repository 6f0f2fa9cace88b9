"""Other limits by the hour: a schedule says how many workers a pool has when.

    Schedule({"08:00-12:00": Hours(min=5, max=10), "12:00-16:00": Hours(min=10, max=20)}, zone="Europe/Paris")

``hours.py`` has the notation. Outside the ranges the pool's ``Balance`` holds; so it does for a factor that is left
at 0. What counts is the clock on the wall in ``zone``, of which the process's own zone knows nothing: on the nights of
a clock change 22:00-06:00 lasts 7 or 9 hours, a range within the skipped hour does not happen, and one within the hour
that comes twice happens twice (``ruler.py`` says why that needs no rule).

At construction the ranges become a staircase: steps along the line of a week, each with the range that holds from
there. What holds now is one bisection, and it changes only at a step.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from copy import copy
from datetime import datetime, tzinfo
from typing import TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from .. import check
from ..clock import LATEST, to_datetime, to_micros
from ..errors import ConfigError
from .balance import Balance, Limits
from .hours import Days, Hours, shown_days, split, weekdays
from .ruler import Calendar, Elapsed, Ruler

Piece: TypeAlias = tuple[int, int, int]
"""Where it begins and ends on the ruler's line, and the index of its range."""
_EMPTY = "schedule: there are no ranges; give one, or leave the schedule out"


class Slot(msgspec.Struct, frozen=True):
    """One of a schedule's ranges."""

    index: int
    """Which one, in the order in which they were given; from 0."""
    range: str
    """As it is written: ``Mon-Fri 08:00-12:00``."""
    hours: Hours

    def __str__(self) -> str:
        return f"{self.range} {self.hours}"


class Schedule:
    """Ranges of time with their limits. Frozen: ``add`` gives a new one. Bad ones raise ConfigError at construction.

    ranges    range -> Hours
    zone      whose clocks count: a name of the tz database, or a tzinfo
    days      for the ranges that name none, ``add``'s too; None: every day
    ordered   where ranges overlap, the first holds; else an overlap is refused

    ``now`` is any aware datetime; a naive one is refused.
    """

    __slots__ = ("_days", "_edges", "_holds", "_ordered", "_pieces", "_ruler", "_slots")

    def __init__(
        self,
        ranges: Mapping[str, Hours] | None = None,
        *,
        zone: str | tzinfo = "UTC",
        days: Days | None = None,
        ordered: bool = False,
    ) -> None:
        self._ruler: Ruler = Calendar(_zone(zone))
        self._ordered = check.flag("schedule: ordered", ordered)
        self._slots: tuple[Slot, ...] = ()
        self._pieces: tuple[Piece, ...] = ()
        self._edges: tuple[int, ...] = ()
        self._holds: tuple[int | None, ...] = ()
        self._days = shown_days(weekdays(days)) or None
        if ranges is not None:
            self._take(ranges, None)

    @classmethod
    def relative(cls, start: datetime, ranges: Mapping[str, Hours], *, ordered: bool = False) -> Schedule:
        """Ranges since ``start``, each once: ``{"30s-1m": Hours(...), "1m-*": Hours(...)}``. For demos and tests."""
        made = cls(ordered=ordered)
        made._ruler = Elapsed(_micros("start", start))
        made._take(ranges, None)
        return made

    def add(self, range: str, hours: Hours, *, days: Days | None = None) -> Schedule:
        """A new schedule, with one range more."""
        if days is not None and split(range)[0]:
            raise ConfigError(f"days: {days!r}: the range {range!r} names its own; give them once")
        made = copy(self)
        made._take({range: hours}, days)
        return made

    def _take(self, ranges: Mapping[str, Hours], days: Days | None) -> None:
        slots, pieces = list(self._slots), list(self._pieces)
        for text, hours in ranges.items():
            if not isinstance(hours, Hours):
                raise ConfigError(f"range {text!r}: {hours!r} is not of the form Hours(min=1, max=4)")
            name, found = self._ruler.read(text, self._days if days is None else days)
            pieces += [(begin, end, len(slots)) for begin, end in found]
            slots.append(Slot(len(slots), name, hours))
        if not slots:
            raise ConfigError(_EMPTY)
        self._edges, self._holds = _staircase(pieces, slots, self._ordered)
        self._slots, self._pieces = tuple(slots), tuple(pieces)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The ranges, in the order in which they were given."""
        return self._slots

    @property
    def zone(self) -> tzinfo:
        """Whose clocks count; UTC for a relative schedule, where none do."""
        return self._ruler.zone

    @property
    def daily_max(self) -> int:
        """The most workers of any range."""
        return max(slot.hours.max for slot in self._given())

    def max_over(self, balance: Balance) -> int:
        """The most workers at any time: in the ranges and outside."""
        return max(self.daily_max, balance.max)

    def get(self, now: datetime) -> Slot | None:
        """The range that holds now; None outside of all. Left edges are inside, right ones outside."""
        return self._at(_micros("now", now))

    def limits(self, balance: Balance, now: datetime) -> Limits:
        """What is in force now. A factor that is taken from ``balance`` gives way to one of the range: a woken
        worker must not be put to sleep at once."""
        slot = self.get(now)
        if slot is None:
            return balance.limits
        hours = slot.hours
        wakeup = hours.wakeup_factor or max(balance.wakeup_factor, hours.sleep_factor)
        sleep = hours.sleep_factor or min(balance.sleep_factor, wakeup)
        return Limits(min=hours.min, max=hours.max, wakeup_factor=wakeup, sleep_factor=sleep)

    def next_change(self, now: datetime) -> datetime | None:
        """The first moment after ``now`` from which ``get`` gives something else, exact, in UTC; None where nothing
        changes any more."""
        at = _micros("now", now)
        here = self._at(at)
        for moment in self._ruler.moments(at, self._edges):
            if moment > LATEST:
                break
            if self._at(moment) != here:
                return to_datetime(moment)
        return None

    def walk(self, begin: datetime, end: datetime) -> Iterator[tuple[datetime, datetime, Slot | None]]:
        """The stretches between two moments, each with the range that holds throughout; times in UTC."""
        at, last = to_datetime(_micros("begin", begin)), to_datetime(_micros("end", end))
        while at < last:
            change = min(self.next_change(at) or last, last)
            yield at, change, self.get(at)
            at = change

    def _at(self, at: int) -> Slot | None:
        slots = self._given()
        step = bisect_right(self._edges, self._ruler.position(at)) - 1
        held = self._holds[step] if step >= 0 else None
        return None if held is None else slots[held]

    def _given(self) -> tuple[Slot, ...]:
        if not self._slots:
            raise ConfigError(_EMPTY)
        return self._slots

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def _values(self) -> tuple[object, ...]:
        return str(self._ruler), self._slots, self._ordered

    def __str__(self) -> str:
        return f"{self._ruler}: {'; '.join(map(str, self._slots))}"

    def __repr__(self) -> str:
        return f"<Schedule {self}>"


def _staircase(pieces: list[Piece], slots: list[Slot], ordered: bool) -> tuple[tuple[int, ...], tuple[int | None, ...]]:
    """Where a step begins, and which range holds from there: the first of those that are open."""
    opening: dict[int, set[int]] = {}
    closing: dict[int, set[int]] = {}
    for begin, end, index in pieces:
        opening.setdefault(begin, set()).add(index)
        closing.setdefault(end, set()).add(index)
    edges = sorted(opening.keys() | closing.keys())
    holds: list[int | None] = []
    open_: set[int] = set()
    for edge in edges:
        open_ = (open_ - closing.get(edge, set())) | opening.get(edge, set())
        if len(open_) > 1 and not ordered:
            first, second = (slots[index].range for index in sorted(open_)[:2])
            raise ConfigError(
                f"range: {second!r} overlaps {first!r}; part them, or give ordered=True, and the first will hold"
            )
        holds.append(min(open_, default=None))
    return tuple(edges), tuple(holds)


def _zone(given: object) -> tzinfo:
    if isinstance(given, tzinfo):
        return given
    try:
        if isinstance(given, str):
            return ZoneInfo(given)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    raise ConfigError(
        f"zone: {given!r} is not known; write it as in 'Europe/Paris' (where all are unknown: pip install tzdata)"
    )


def _micros(name: str, moment: object) -> int:
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise ConfigError(f"{name}: {moment!r} is not a datetime with a time zone")
    return to_micros(moment)
