"""The core behind a lock and a clock: a Store."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Sequence
from typing import NoReturn, cast

from .. import fork
from ..admit import admit
from ..clock import FAR, SECOND
from ..errors import Unsupported
from ..job import Job, Stats
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


class _Forked:
    """Stands where the core was: whatever is asked of it is refused."""

    def __getattr__(self, name: str) -> NoReturn:
        raise Unsupported(
            "this memory queue belongs to the process that made it, and this is a forked child: make a queue after "
            "the fork, or use sqlite:/// to share one between processes"
        )


class MemoryStore:
    """One lock around one core. Each method reads the clock under the lock, so no step sees time go back."""

    capabilities = Capabilities(durable=False, processes=False)

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.rooms = Rooms()
        self._lock = threading.Lock()
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
        self._lock = threading.Lock()
        self._core = cast(Core, _Forked())

    def _now(self) -> int:
        """Queue time; first moves what the calendar moves."""
        now = self._time.now()
        if change := self._time.stepped(now):
            log.warning("the wall clock stepped by %+.1f s; leases and delays are not affected", change / SECOND)
            self._time.skew += change
            self._core.step(change)
        return now

    @property
    def ready(self) -> int:
        return 0 if self._core.paused else self._core.ready_count

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

    def put(self, jobs: Sequence[Job]) -> None:
        with self._lock:
            now = self._now()
            records = [admit(job, self.settings, now, self._core.skew) for job in jobs]
            self._core.put(records, self.settings.overflow, now)

    def take(self, limit: int) -> list[Job]:
        with self._lock:
            return self._core.take(limit, self._now())

    def ack(self, jobs: Sequence[Job]) -> list[Job]:
        with self._lock:
            now = self._now()
            return [job for job in jobs if not self._core.ack(job, now)]

    def nack(self, job: Job, delay: int, error: str | None) -> bool:
        with self._lock:
            return self._core.nack(job, delay, error, self._now())

    def release(self, job: Job, delay: int) -> bool:
        with self._lock:
            return self._core.release(job, delay, self._now())

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
        first, second = sorted((self, to), key=id)
        with first._lock, second._lock:
            return self._core.forward(job, self._now(), to._core, to._now())

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
            self._core.promote(self._now())
            dropped = self._core.drop_delayed()
        if dropped:
            log.warning(
                "queue %r closed: %d delayed jobs were not due and are dropped (memory keeps nothing)",
                self.settings.queue,
                dropped,
            )
