"""Where a claim begins to look: at the front of the line, or where the last one found jobs.

A row that was deleted stays in the index until vacuum may remove it, and while somebody keeps an old snapshot open
vacuum may not. Every claim from the front then steps over all that was done since. A claim that begins at the place
of the last one steps over none of it, but is blind for what came in before that place: an urgent job, a retried one,
one whose transaction took long. So the front is looked at whenever that costs about the same, which is nearly
always; and when it does not, as often as it costs a twentieth of the time.
"""

from __future__ import annotations

from typing import NamedTuple

SHARE = 20
"""A dear look from the front is followed by a pause of so many times its length."""
DEAR = 2
"""So many times dearer than one from the last place is dear."""
REMEMBER = 50
"""After so many looks from the front, one from the last place, to know what that costs."""


class Place(NamedTuple):
    """In the line: ``~priority``, then the place among equals."""

    rank: int
    pk: int


FRONT = Place(-(2**31), -(2**63))


class Hint:
    """Of one queue in one process. Durations in any one unit; a hint, so no lock."""

    def __init__(self) -> None:
        self._last = FRONT
        self._front_cost = 0.0
        self._other_cost = 0.0
        self._looked_at = 0.0
        self._since = 0

    def place(self, now: float) -> Place:
        """Where to begin at ``now``."""
        if self._last is FRONT:
            return FRONT
        if self._front_cost > DEAR * self._other_cost:
            learn = not self._other_cost and self._since == 0
            if learn or now < self._looked_at + SHARE * self._front_cost:
                return self._last
            return FRONT
        return self._last if self._since >= REMEMBER else FRONT

    def found(self, began: Place, first: Place | None, now: float, cost: float) -> None:
        """A look from ``began`` took ``cost`` and found ``first`` at the head; None: nothing at all."""
        if began is FRONT:
            self._front_cost, self._looked_at = cost, now
            self._since += 1
        else:
            self._other_cost = cost
            self._since = 0
        self._last = FRONT if first is None else first

    def came(self, place: Place) -> None:
        """Something was put in there."""
        if place < self._last:
            self._last = FRONT
