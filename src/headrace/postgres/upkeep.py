"""What time does to a queue, and how this process learns of it.

Nobody is appointed: whoever comes first moves what is due, in small transactions, and the others skip what it has
locked. Each process keeps in mind when the next thing falls due, as far as it knows, and looks at what others did
every ``poll`` seconds besides.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from ..clock import FAR, SECOND
from .connected import Connected
from .hint import FRONT, Place
from .step import Step

log = logging.getLogger("headrace.postgres")
T = TypeVar("T")

CHUNK = 5_000
"""Rows that one transaction moves at most when something falls due."""
PRUNE = 1_000
"""The same, of what was kept for long enough: these rows may be large."""
DEAF = SECOND // 10
"""Between two looks where nobody can be woken."""


class Upkeep(Connected):
    """Also what a store shows of what it last saw."""

    @property
    def is_due(self) -> bool:
        """Something has to be done before the next call, as far as this process knows: see ``catch_up``."""
        return not self.queue or self.settings.clock.steady() >= self._soonest or bool(self._calendar_step())

    def catch_up(self) -> None:
        """Open, and move what is due."""
        self.open()
        self._sweep()

    def _begin(self) -> None:
        if self.is_due:
            self.catch_up()

    def _step(self, work: Callable[[Step], T]) -> T:
        """Several statements in one transaction; what is due has been moved before."""
        self._begin()
        return self._plain_step(work)

    def _sweep(self) -> None:
        """Move everything that is due, in transactions of bounded size, and learn what is due next."""
        with self._sweeping:
            if not self._own_clock:
                self._seen(*self._one("now")[0])  # before anything is moved because it is late
            if change := self._calendar_step():
                self._moved = 0
                self._step_calendar(change)
            moved = CHUNK
            while moved == CHUNK:
                moved = self._one("promote", limit=CHUNK)[0][0]
                self._ready.came(moved)
                self._hint.came(FRONT)
            while self._plain_step(lambda step: step.expire(CHUNK // 50)):
                pass
            self._look()

    def _step_calendar(self, change: int) -> None:
        """What was asked for by calendar moves with it, in every queue of the schema; nothing else does."""
        log.warning("the wall clock stepped by %+.1f s; leases and delays are not affected", change / SECOND)

        def work(step: Step) -> None:
            if step.do("clock_step", change=change, skew=self._skew):
                step.do("clock_step_jobs", change=change)
            step.skew = step.rows("now", now=self._now)[0][1]

        self._plain_step(work)

    def _look(self) -> None:
        """Is there something, and when is the next thing due?"""
        news, began = self._ready.begin(), time.monotonic()
        place = self._hint.place(began)
        now, skew, paused, rank, pk, delayed, leased = self._one("look", rank=place.rank, place=place.pk)[0]
        if place is FRONT:  # else it says nothing of what a claim costs
            ended = time.monotonic()
            self._hint.found(place, None if pk is None else Place(rank, pk), ended, ended - began)
        elif pk is None:
            self._hint.came(FRONT)  # there may be something before that place
            self._look()
            return
        self._seen(now, skew)
        self._ready.counted(news, int(pk is not None and not paused))
        steady = self.settings.clock.steady()
        soonest = min((moment for moment in (delayed, leased) if moment is not None), default=FAR)
        self._soonest = FAR if soonest >= FAR else soonest - self._anchor
        self._look_at = steady + (self._poll if self._bell is None or self._bell.works else min(self._poll, DEAF))
        if self.rooms.producers.tickets:
            self._measure()
        if steady >= self._fold_at:
            self._fold_at = steady + self._poll
            self._one_change("fold", limit=20_000)
            self._prune()

    def _prune(self) -> None:
        for name, keep in self._keeps.items():
            while self._one(f"prune_{name}", keep=keep, limit=PRUNE)[0][0] == PRUNE:
                pass

    # Watching

    @property
    def ready(self) -> int:
        return self._ready.count

    @property
    def soonest(self) -> int:
        return min(self._soonest, self._look_at)

    def changed(self) -> bool:
        if self._bell is not None:
            self._bell.call()
        return self.settings.clock.steady() >= self.soonest or bool(self._calendar_step())

    def tick(self) -> None:
        self.open()
        if self.is_due:
            self._sweep()
        else:
            self._look()

    def _measure(self) -> None:
        self.room = self.settings.capacity - self._one("size")[0][0]
