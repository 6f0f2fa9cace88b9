"""The Store on an SQLite file: each call is one transaction, holding for all processes that share the file.

A transaction begins with the queue's own row (its figures, its last fence, and ``soonest``, the moment before
which nothing falls due), moves what is due, does its work, and writes the row back if that changed. So the
figures are exact, cost nothing to read, and survive whatever the jobs survive.
"""

from __future__ import annotations

import logging
import secrets
import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from .. import fork
from ..clock import FAR, SECOND
from ..core import admit
from ..errors import Unsupported
from ..job import Job, State, Stats
from ..queue import Capabilities
from ..rules import TOTALS, to_itself
from ..settings import Settings
from ..store import Store
from ..timeline import step as calendar_step
from ..waiting import Rooms
from . import schema
from .database import Database, file_key
from .step import SQL, STATES, Step

T = TypeVar("T")

log = logging.getLogger("headrace.sqlite")


class SqliteStore:
    """One handle on one queue in one file. ``poll``: seconds between two looks for other processes' writes.
    ``dead_keep``: microseconds after which dead letters are thrown away; 0: never."""

    capabilities = Capabilities(durable=True, processes=True)

    def __init__(self, settings: Settings, database: Database, rooms: Rooms, poll: float, dead_keep: int = 0) -> None:
        self.settings = settings
        self.rooms = rooms
        self._database = database
        self._poll = round(poll * SECOND)
        self._dead_keep = dead_keep
        self._prune_at = 0 if dead_keep else FAR
        self._lock = threading.Lock()
        self._closed = False
        # What the last step saw, for callers that only want to know whether to look again.
        self.ready = 0
        self.room = settings.capacity
        self._soonest = FAR
        self._anchor = self._skew = 0
        self._version = -1
        self._queue = 0
        """Its number in the file; 0: not opened yet."""
        fork.register(self)

    def __repr__(self) -> str:
        return f"sqlite:///{self._database.path}"

    def open(self) -> None:
        """The first step would do it; this way a caller learns at once what is wrong with the file."""
        with self._lock:
            self._open()

    def _open(self) -> None:
        """Bring the tables up to date, anchor queue time to this boot, add the queue. Once for each file."""
        if self._queue and not self._database.gone():
            return
        if self._queue:
            log.error(
                "%r: the file was removed or replaced while it was in use; beginning anew with what is there", self
            )
            self._database.close()
            self._queue = 0

        def work(connection: sqlite3.Connection) -> int:
            schema.migrate(connection)
            clock = self.settings.clock
            found = connection.execute(SQL["clock_get"]).fetchone()
            if found is None or found[0] != self._boot:
                skew = 0 if found is None else found[2]
                anchor = clock.wall() - skew - clock.steady()
                connection.execute(SQL["clock_set"], {"boot": self._boot, "anchor": anchor, "skew": skew})
            name = {"name": self.settings.queue, "salt": secrets.randbits(62)}
            connection.execute(SQL["queue_add"], name)
            number: int = connection.execute(SQL["queue_id"], (self.settings.queue,)).fetchone()[0]
            return number

        try:
            self._queue = self._database.write(work)
        except BaseException:
            self._database.close()
            raise

    @property
    def _boot(self) -> str:
        """Whose steady clock it is; a virtual one has no boots."""
        boot: str = getattr(self.settings.clock, "boot", "virtual")
        return boot

    # One transaction

    def _write(self, work: Callable[[Step], T]) -> T:
        def transaction(connection: sqlite3.Connection) -> tuple[T, Step]:
            step = self._begin(connection)
            step.promote()
            if self._prunes:
                step.prune_at = step.prune(self._dead_keep)
            result = work(step)
            step.save()
            return result, step

        with self._lock:
            self._open()
            return self._finish(self._database.write(transaction))

    def _look(self, work: Callable[[Step], T]) -> T | None:
        """``work`` without the write lock; None where something has to be moved first, which is writing."""

        def transaction(connection: sqlite3.Connection) -> tuple[T, Step] | None:
            step = Step(connection, self._queue, self.settings, self.settings.clock.steady())
            late = step.due or self._prunes or self._calendar_step(step.now, step.figures.skew)
            return None if late else (work(step), step)

        with self._lock:
            self._open()
            found = self._database.read(transaction)
            return None if found is None else self._finish(found)

    def _read(self, work: Callable[[Step], T]) -> T:
        """For calls that only want to know."""

        def boxed(step: Step) -> tuple[T]:
            return (work(step),)

        return (self._look(boxed) or self._write(boxed))[0]

    def _begin(self, connection: sqlite3.Connection) -> Step:
        step = Step(connection, self._queue, self.settings, self.settings.clock.steady())
        if change := self._calendar_step(step.now, step.figures.skew):
            log.warning("the wall clock stepped by %+.1f s; leases and delays are not affected", change / SECOND)
            step.calendar_stepped(change, self._boot)
        return step

    @property
    def _prunes(self) -> bool:
        """The longest dead letter that the last look found has reached its age, or one that died right after it."""
        return self.settings.clock.steady() >= self._prune_at

    def _calendar_step(self, now: int, skew: int) -> int:
        return calendar_step(self.settings.clock.wall(), now, skew)

    def _finish(self, done: tuple[T, Step]) -> T:
        result, step = done
        figures = step.figures
        self.ready = 0 if figures.paused else figures.ready
        self.room = self.settings.capacity - figures.size
        self._anchor, self._skew = figures.anchor, figures.skew
        self._soonest = FAR if figures.soonest >= FAR else figures.soonest - figures.anchor
        if step.prune_at is not None:
            self._prune_at = step.prune_at - figures.anchor
        if self._closed:
            self._database.close()
        return result

    # Watching

    @property
    def soonest(self) -> int:
        return min(self._soonest, self.settings.clock.steady() + self._poll)

    def changed(self) -> bool:
        steady = self.settings.clock.steady()
        if steady >= self._soonest or self._prunes or self._calendar_step(steady + self._anchor, self._skew):
            return True
        if not self._lock.acquire(blocking=False):
            return False  # a step is under way; it will tell, or the next look will
        try:
            version, self._version = self._version, self._database.version()
            return version != self._version or self._database.gone()
        finally:
            self._lock.release()

    def tick(self) -> None:
        self._read(lambda step: None)

    # The calls

    def put(self, jobs: Sequence[Job]) -> None:
        settings = self.settings

        def work(step: Step) -> None:
            step.put([admit(job, settings, step.now, step.figures.skew) for job in jobs])

        self._write(work)

    def take(self, limit: int) -> list[Job]:
        if not self.ready and self._look(lambda step: bool(step.figures.paused or not step.figures.ready)):
            return []  # nothing to claim: no need to stand in line for the write lock
        return self._write(lambda step: [] if step.figures.paused else step.take(limit))

    def ack(self, jobs: Sequence[Job]) -> list[Job]:
        return self._write(lambda step: step.ack(jobs))

    def nack(self, job: Job, delay: int, error: str | None) -> bool:
        def work(step: Step) -> bool:
            held = step.held(job)
            if held is not None:
                attempt, max_attempts, cancelled = held
                step.figures.retried += attempt < max_attempts and not cancelled
                step.failed(job.ref, attempt, max_attempts, cancelled, step.now + delay, error)
            return held is not None

        return self._write(work)

    def release(self, jobs: Sequence[Job], delay: int) -> list[Job]:
        return self._write(lambda step: step.release(jobs, delay))

    def bury(self, job: Job, error: str | None) -> bool:
        def work(step: Step) -> bool:
            held = step.held(job)
            if held is not None:
                step.bury(job.ref, error, step.now)
            return held is not None

        return self._write(work)

    def abandon(self, job: Job) -> bool:
        def work(step: Step) -> bool:
            held = step.held(job)
            if held is not None:
                step.finish(job.ref, "cancelled")
            return held is not None

        return self._write(work)

    def forward(self, job: Job, to: Store) -> bool:
        if not isinstance(to, SqliteStore) or file_key(to._database.path) != file_key(self._database.path):
            raise Unsupported(f"forward: {to!r} is not the file of {self!r}, and no transaction spans two")
        to.open()
        if to.settings.queue == self.settings.queue:
            raise to_itself(self.settings.queue)
        return self._write(lambda step: step.forward(job, to._queue, to.settings))

    def extend(self, jobs: Sequence[Job], duration: int, too_late: int) -> list[Job]:
        return self._write(lambda step: step.extend(jobs, duration, too_late))

    def cancel(self, id: str) -> bool:
        return self._write(lambda step: step.cancel(id))

    def find(self, id: str) -> Job | None:
        def work(step: Step) -> Job | None:
            for row in step.connection.execute(SQL["find"], (step.queue, id)):
                return step.jobs([row[1:]], STATES[row[0]])[0]
            for row in step.connection.execute(SQL["find_dead"], (step.queue, id)):
                return step.jobs([row], State.DEAD)[0]
            return None

        return self._read(work)

    def dead(self, limit: int, after: int) -> list[Job]:
        def work(step: Step) -> list[Job]:
            return step.jobs(step.rows("dead", limit=limit, after=after), State.DEAD)

        return self._read(work)

    def take_dead(self, limit: int) -> list[Job]:
        def work(step: Step) -> list[Job]:
            taken = step.jobs(step.rows("dead", limit=limit, after=0), State.DEAD)
            step.connection.executemany(SQL["dead_remove"], [(job.ref,) for job in taken])
            step.figures.dead -= len(taken)
            step.figures.taken += len(taken)
            return taken

        return self._write(work)

    def replay(self, limit: int | None, ids: frozenset[str] | None) -> int:
        return self._write(lambda step: step.replay(limit, ids))

    def set_paused(self, paused: bool) -> None:
        def work(step: Step) -> None:
            step.figures.paused = int(paused)

        self._write(work)

    def stats(self) -> Stats:
        def work(step: Step) -> Stats:
            figures = step.figures
            oldest = step.connection.execute(SQL["oldest"], (step.queue,)).fetchone()
            return Stats(
                ready=figures.ready,
                delayed=figures.delayed,
                inflight=figures.inflight,
                dead=figures.dead,
                oldest_ready=0.0 if oldest is None else (step.now - oldest[1]) / SECOND,
                capacity=self.settings.capacity,
                paused=bool(figures.paused),
                **{name: getattr(figures, name) for name in TOTALS},
            )

        return self._read(work)

    def close(self) -> None:
        """Steps after this one open the file for themselves and close it again."""
        with self._lock:
            self._closed = True
            self._database.close()

    def before_fork(self) -> None:
        self._lock.acquire()
        self._database.close()

    def after_fork_in_parent(self) -> None:
        self._lock.release()

    def after_fork_in_child(self) -> None:
        self._lock = threading.Lock()
        self.rooms.clear()
