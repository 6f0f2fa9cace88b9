"""Where a moment stands on the line along which a schedule is written, and when that place may change.

A schedule is a line cut into pieces. There are two ways to read a position on it: ``Calendar`` is what a clock on the
wall of some time zone shows, as microseconds since Monday 00:00, and begins anew each week; ``Elapsed`` is the time
since a start. Moments are microseconds since 1970 (UTC).

The calendar needs no rule for clock changes, for between two of them its line runs along with time. So a piece of
time is cut wherever the offset to UTC changes, and within each such piece the next edge is one subtraction away. An
hour that is skipped has no moments, and one that comes twice has two for each reading: whoever asks what the clock
shows gets both right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Protocol

from ..clock import LATEST, MICROSECOND, to_datetime, to_micros
from ..errors import ConfigError
from .hours import DAY, Days, Edges, daily, elapsed, shown_days, shown_elapsed, shown_hours, split, weekdays

WEEK = 7 * DAY
_MONDAY = 3 * DAY
"""1970-01-01 was a Thursday."""
_HORIZON = 22 * DAY
"""A week without a change does not mean that none will come: a clock change may skip an edge, even a whole day."""
_FIRST = to_micros(datetime.min.replace(tzinfo=UTC)) + DAY
_LAST = LATEST - DAY
"""A day from the ends of the calendar every zone still has a reading."""


class Ruler(Protocol):
    @property
    def zone(self) -> tzinfo:
        """Whose clock is read."""

    def read(self, text: str, days: Days | None) -> tuple[str, list[Edges]]:
        """A range in this ruler's notation, as it is written at its shortest, and its pieces of the line."""

    def position(self, at: int) -> int:
        """Where the moment stands on the line."""

    def moments(self, at: int, edges: Sequence[int]) -> Iterator[int]:
        """In order, every moment after ``at`` at which another piece may begin, and perhaps some more."""


class Calendar:
    """The week in a time zone. ``edges`` are within 0 <= edge < 7 days."""

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone

    def __str__(self) -> str:
        return str(self.zone)

    def read(self, text: str, days: Days | None) -> tuple[str, list[Edges]]:
        own, hours = split(text)
        on, (left, right) = weekdays(own or days), daily(hours)
        pieces = [(day * DAY + left, day * DAY + right) for day in on]
        if pieces[-1][1] > WEEK:  # from Sunday into Monday: over the end of the line
            begin, end = pieces.pop()
            pieces += [(begin, WEEK), (0, end - WEEK)]
        return f"{shown_days(on)} {shown_hours((left, right))}".lstrip(), pieces

    def position(self, at: int) -> int:
        return (at + self._offset(at) + _MONDAY) % WEEK

    def moments(self, at: int, edges: Sequence[int]) -> Iterator[int]:
        end = min(at + _HORIZON, LATEST)
        while at < end:
            here, until = self.position(at), self._even_until(at)
            yield from sorted(at + away for edge in edges if 0 < (away := (edge - here) % WEEK) < until - at)
            yield until
            at = until

    def _offset(self, at: int) -> int:
        offset = to_datetime(min(max(at, _FIRST), _LAST)).astimezone(self.zone).utcoffset()
        assert offset is not None
        return offset // MICROSECOND

    def _even_until(self, at: int) -> int:
        """The next change of the offset to UTC, or a day later where there is none. No zone has ever changed it
        there and back within a day; the shortest time between two changes is four."""
        offset = self._offset(at)
        same, other = at, at + DAY
        if self._offset(other) == offset:
            return other
        while other - same > 1:
            middle = (same + other) // 2
            if self._offset(middle) == offset:
                same = middle
            else:
                other = middle
        return other


class Elapsed:
    """The time since a start; before it positions are negative."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.zone = UTC

    def __str__(self) -> str:
        return f"since {to_datetime(self.start).isoformat()}"

    def read(self, text: str, days: Days | None) -> tuple[str, list[Edges]]:
        if days is not None:
            raise ConfigError(f"days: {days!r}: a relative schedule has none")
        edges = elapsed(text)
        return shown_elapsed(edges), [edges]

    def position(self, at: int) -> int:
        return at - self.start

    def moments(self, at: int, edges: Sequence[int]) -> Iterator[int]:
        return (self.start + edge for edge in sorted(edges) if self.start + edge > at)
