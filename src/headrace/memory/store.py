"""The core behind a lock and a clock: a Store."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence

from .. import fork
from ..admit import admit
from ..clock import FAR, SECOND
from ..errors import Unsupported
from ..job import Job, Stats
from ..native import Gate
from ..queue import Capabilities
from ..rules import to_itself
from ..settings import Settings
from ..store import Store
from ..timeline import Timeline
from ..waiting import Rooms
from ._core import Core

LOOK = SECOND // 2
"""Between two looks at the calendar, while a waiter waits for a moment of the calendar."""

log = logging.getLogger("headrace.memory")


class MemoryStore:
    """One lock around one core. Each method reads the clock under the lock, and no step sees queue time go back."""

    capabilities = Capabilities(durable=False, processes=False)

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.rooms = Rooms()
        self.closed = False
        self._lock = Gate()
        self._forked = False
        self._time = Timeline(settings.clock)
        # Fences begin at the time of day, so that they do not go back when the process starts anew.
        self._core = Core(settings, salt=secrets.randbits(62), fence=settings.clock.wall())
        fork.register(self)

    def before_fork(self) -> None:
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """The child has a copy of every job: doing them would do them twice."""
        self._lock = Gate()
        self._forked = True

    def _now(self) -> int:
        """Queue time; first moves what the calendar moves."""
        if self._forked:
            raise Unsupported(
                "this memory queue belongs to the process that made it, and this is a forked child: make a queue after "
                "the fork, or use sqlite:/// to share one between processes"
            )
        now = self._time.now()
        change = self._time.stepped(now)
        if change:
            self._time.skew += change
            self._core.step(change, now)
            log.warning("the wall clock stepped by %+.1f s; leases and delays are not affected", change / SECOND)
        return now

    def _about(self) -> int:
        """Queue time for a step that shows no moment and asks only what is due: as long as that is nothing for another
        second, a cheap look at one clock tells."""
        about = self._time.roughly()
        return about if about + SECOND < self._core.soonest and not self._forked else self._now()

    @property
    def ready(self) -> int:
        return 0 if self._core.paused else self._core.ready.count

    @property
    def room(self) -> int:
        return self.settings.capacity - len(self._core.jobs)

    @property
    def soonest(self) -> int:
        core = self._core
        soonest = core.soonest if core.soonest >= FAR else core.soonest - self._time.anchor
        if core.by_calendar:  # the calendar may step at any time
            soonest = min(soonest, self.settings.clock.steady() + LOOK)
        return soonest

    def changed(self) -> bool:
        now = self._time.now()
        return self._core.soonest <= now or self._time.stepped(now) != 0

    def tick(self) -> None:
        with self._lock:
            self._core.promote(self._now())

    def __repr__(self) -> str:
        return "memory://"

    # The steps that every job takes. Compiled, the lock is cheaper this way than by a ``with``.

    def put(self, jobs: Sequence[Job]) -> None:
        with self._lock:
            now = self._now()
            records = [admit(job, self.settings, now, self._core.skew) for job in jobs]
            self._core.put(records, self.settings.overflow, now)

    def put_one(self, job: Job) -> bool:
        """The plain case of ``put``. False, and nothing is changed: it takes a closer look."""
        self._lock.acquire()
        try:
            return self._put_one(job)
        finally:
            self._lock.release()

    def _put_one(self, job: Job) -> bool:
        if isinstance(job, Job):
            given = job  # of a type that is known from here on
            self._core.jobs.expect(given)
        now = self._now()
        return self._core.put_one(admit(job, self.settings, now, self._core.skew), now)

    def put_many(self, jobs: Sequence[Job]) -> bool:
        """As ``put_one``, for all of them or none."""
        self._lock.acquire()
        try:
            return self._put_many(jobs)
        finally:
            self._lock.release()

    def _put_many(self, jobs: Sequence[Job]) -> bool:
        now = self._now()
        return self._core.put_many([admit(job, self.settings, now, self._core.skew) for job in jobs], now)

    def take(self, limit: int) -> list[Job]:
        self._lock.acquire()
        try:
            return self._core.take(limit, self._now())
        finally:
            self._lock.release()

    def take_one(self) -> Job | None:
        self._lock.acquire()
        try:
            return self._core.take_one(self._now())
        finally:
            self._lock.release()

    def ack(self, jobs: Sequence[Job]) -> list[Job]:
        self._lock.acquire()
        try:
            return self._core.ack_all(jobs, self._about())
        finally:
            self._lock.release()

    def ack_one(self, job: Job) -> bool:
        """False, and nothing is changed or counted: it takes a closer look."""
        self._lock.acquire()
        try:
            return self._core.ack_one(job, self._about())
        finally:
            self._lock.release()

    # The others.

    def nack(self, job: Job, delay: int, error: str | None) -> bool:
        with self._lock:
            return self._core.nack(job, delay, error, self._now())

    def release(self, jobs: Sequence[Job], delay: int) -> list[Job]:
        with self._lock:
            now = self._now()
            return [job for job in jobs if not self._core.release(job, delay, now)]

    def bury(self, job: Job, error: str | None) -> bool:
        with self._lock:
            return self._core.bury(job, error, self._now())

    def abandon(self, job: Job) -> bool:
        with self._lock:
            return self._core.abandon(job, self._now())

    def forward(self, job: Job, to: Store) -> bool:
        """Both locks, always in the same order, so that two that forward to each other never wait in a circle."""
        if not isinstance(to, MemoryStore):
            raise Unsupported(f"forward: {to!r} is not in this process's memory")
        if to is self:
            raise to_itself(self.settings.queue)
        there = to  # of a type that is known from here on
        first, second = sorted((self, there), key=id)
        with first._lock, second._lock:
            return self._core.forward(job, self._now(), there._core, there._now())

    def extend(self, jobs: Sequence[Job], duration: int, too_late: int) -> list[Job]:
        with self._lock:
            now = self._now()
            held = [self._core.extend(job, duration, too_late, now) for job in jobs]
        return [job for job in held if job is not None]

    def cancel(self, id: str) -> bool:
        with self._lock:
            return self._core.cancel(id, self._now())

    def find(self, id: str) -> Job | None:
        with self._lock:
            return self._core.find(id, self._now())

    def dead(self, limit: int, after: int) -> list[Job]:
        with self._lock:
            return self._core.look_dead(limit, after, self._now())

    def take_dead(self, limit: int) -> list[Job]:
        with self._lock:
            return self._core.take_dead(limit, self._now())

    def replay(self, limit: int | None, ids: frozenset[str] | None) -> int:
        with self._lock:
            return self._core.replay(limit, ids, self._now())

    def set_paused(self, paused: bool) -> None:
        with self._lock:
            self._core.pause(paused, self._now())

    def stats(self) -> Stats:
        with self._lock:
            return self._core.stats(self._now())

    def close(self) -> None:
        with self._lock:
            self.closed = True
            self._core.promote(self._now())
            dropped = self._core.drop_delayed()
        if dropped:
            log.warning(
                "queue %r closed: %d delayed jobs were not due and are dropped (memory keeps nothing)",
                self.settings.queue,
                dropped,
            )
