"""One transaction under way: the queue's figures, and the moves between the places that its calls are made of."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from .. import sql
from ..clock import FAR
from ..core import admit, jobs_of
from ..errors import DuplicateJob
from ..job import Job, State
from ..overflow import DropNewest, DropOldest
from ..record import Record, refuse_duplicates
from ..rules import EXPIRED, TOO_LATE, no_room, onward
from ..settings import Settings

SQL = sql.queries("sqlite")
PRUNE = 1_000
"""Dead letters that one transaction throws away at most: they may be large."""
DELAYED, READY, INFLIGHT = range(3)
STATES = (State.DELAYED, State.READY, State.INFLIGHT)


class Figures(msgspec.Struct):
    """The queue's row in the order of ``load.sql``; from ``paused`` on it is what ``save.sql`` writes."""

    anchor: int
    skew: int
    salt: int
    paused: int
    fence: int
    soonest: int
    ready: int
    delayed: int
    inflight: int
    dead: int
    enqueued: int
    acked: int
    retried: int
    expired_leases: int
    ack_too_late: int
    cancelled: int
    taken: int
    dropped: int
    dead_total: int
    dead_dropped: int
    deadline_missed: int

    @property
    def size(self) -> int:
        return self.ready + self.delayed + self.inflight


class Step:
    """Load, move what is due, do, save. All moments are queue time in microseconds."""

    __slots__ = ("_before", "connection", "figures", "now", "prune_at", "queue", "settings")

    def __init__(self, connection: sqlite3.Connection, queue: int, settings: Settings, steady: int) -> None:
        self.connection = connection
        self.queue = queue
        self.settings = settings
        self._before = connection.execute(SQL["load"], (queue,)).fetchone()
        self.figures = Figures(*self._before)
        self.now = steady + self.figures.anchor
        self.prune_at: int | None = None
        """When to throw away dead letters again, if that has been looked at."""

    def save(self) -> None:
        after = msgspec.structs.astuple(self.figures)
        if after != self._before:
            self.connection.execute(SQL["save"], (*after[3:], self.queue))

    def rows(self, name: str, **values: object) -> list[tuple[Any, ...]]:
        return self.connection.execute(SQL[name], {"queue": self.queue, **values}).fetchall()

    def change(self, name: str, **values: object) -> int:
        """Run a statement that writes; how many rows it touched."""
        return self.connection.execute(SQL[name], {"queue": self.queue, **values}).rowcount

    def jobs(self, rows: Iterable[Iterable[Any]], state: State) -> list[Job]:
        figures = self.figures
        return jobs_of(rows, state, self.settings.queue, figures.salt, figures.skew)

    # What time does

    @property
    def due(self) -> bool:
        return self.now >= self.figures.soonest

    def promote(self) -> None:
        """Everything that is due, in one transaction: delayed jobs become ready, leases that are over end."""
        if not self.due:
            return
        figures = self.figures
        moved = self.change("promote", now=self.now)
        figures.delayed -= moved
        figures.ready += moved
        for pk, attempt, max_attempts, cancelled, due in self.rows("expired", now=self.now):
            figures.expired_leases += 1
            self.failed(pk, attempt, max_attempts, cancelled, due, EXPIRED)
        soonest = self.rows("soonest")[0][0]
        figures.soonest = FAR if soonest is None else soonest

    def prune(self, keep: int) -> int:
        """Throw away dead letters that died ``keep`` ago or before, the longest dead first; when to look again."""
        longest = self.rows("dead_ages", limit=1)
        if longest and longest[0][1] + keep <= self.now:
            gone = [(pk,) for pk, died in self.rows("dead_ages", limit=PRUNE) if died + keep <= self.now]
            self.connection.executemany(SQL["dead_remove"], gone)
            self.figures.dead -= len(gone)
            self.figures.dropped += len(gone)
            longest = self.rows("dead_ages", limit=1)
        return keep + (longest[0][1] if longest else self.now)

    def calendar_stepped(self, change: int, boot: str) -> None:
        """What was asked for by calendar moves with it, in every queue of the file; nothing else does."""
        figures = self.figures
        figures.skew += change
        values = {"boot": boot, "anchor": figures.anchor, "skew": figures.skew}
        self.connection.execute(SQL["clock_set"], values)
        self.connection.execute(SQL["clock_step_jobs"], {"change": change})
        self.connection.execute(SQL["clock_step_queues"])
        figures.soonest = 0

    # Moves of one job in flight, its lease given up

    def failed(self, pk: int, attempt: int, max_attempts: int, cancelled: int, due: int, error: str | None) -> None:
        """Cancelled if somebody asked for that, back in its old place in line while attempts are left, else dead."""
        if cancelled:
            self.finish(pk, "cancelled")
        elif attempt >= max_attempts:
            self.bury(pk, error, min(due, self.now))
        else:
            self.put_back(pk, attempt, due, error)

    def put_back(self, pk: int, attempt: int, due: int, error: str | None) -> None:
        self.figures.inflight -= 1
        state = self._enter_line(due)
        self.change("put_back", pk=pk, state=state, due=due, attempt=attempt, error=error)

    def finish(self, pk: int, total: str) -> None:
        self.change("remove", pk=pk)
        self.figures.inflight -= 1
        setattr(self.figures, total, getattr(self.figures, total) + 1)

    def bury(self, pk: int, error: str | None, died: int, unleased: int = 0) -> None:
        """Into the dead letters; the id is free again. When they are full, the oldest stay."""
        figures = self.figures
        figures.dead_total += 1
        limit = self.settings.dead_capacity
        if limit is not None and figures.dead >= limit:
            figures.dead_dropped += 1
        else:
            figures.dead += 1
            self.change("bury", pk=pk, died=died, error=error, unleased=unleased)
        self.change("remove", pk=pk)
        figures.inflight -= 1

    # The calls that are more than one move

    def put(self, records: Sequence[Record]) -> None:
        settings, figures = self.settings, self.figures
        over = figures.size + len(records) - settings.capacity
        makes_room = isinstance(settings.overflow, (DropOldest, DropNewest))
        if over > 0 and not makes_room:
            raise no_room(settings.queue, figures.size, settings.capacity, len(records))
        if over > 0:
            refuse_duplicates(records, self.exists)  # nobody makes room for what cannot come in
        figures.enqueued += len(records)
        if over > 0 and isinstance(settings.overflow, DropNewest):
            figures.dropped += min(over, len(records))
            records = records[: max(len(records) - over, 0)]
        elif over > 0:
            if over > figures.ready + figures.delayed:
                raise no_room(settings.queue, figures.size, settings.capacity, len(records))
            self._drop_oldest(over)
        inserted = self.connection.total_changes
        try:
            self.connection.executemany(SQL["put"], [self._row(record) for record in records])
        except sqlite3.IntegrityError as error:  # the unique index refused the one after the last inserted
            raise DuplicateJob(records[self.connection.total_changes - inserted].id) from error

    def exists(self, id: str) -> bool:
        """Does an unfinished job hold this id?"""
        return self.connection.execute(SQL["exists"], (self.queue, id)).fetchone() is not None

    def _enter_line(self, due: int) -> int:
        """The state of a job that becomes ready at ``due``, counted."""
        figures = self.figures
        if due <= self.now:
            figures.ready += 1
            return READY
        figures.delayed += 1
        figures.soonest = min(figures.soonest, due)
        return DELAYED

    def _row(self, record: Record) -> tuple[object, ...]:
        state = self._enter_line(record.due)
        return (
            *(self.queue, record.id, record.payload, record.priority, record.max_attempts, record.enqueued),
            *(record.run_at, record.deadline, record.absolute, state, record.due),
        )

    def _drop_oldest(self, count: int) -> None:
        figures = self.figures
        ready = self.change("drop_oldest", state=READY, count=count)
        delayed = self.change("drop_oldest", state=DELAYED, count=count - ready)
        figures.ready -= ready
        figures.delayed -= delayed
        figures.dropped += count

    def take(self, limit: int) -> list[Job]:
        figures = self.figures
        taken: list[tuple[Any, ...]] = []
        while figures.ready and len(taken) < limit:
            figures.fence += 1
            until = self.now + self.settings.lease_us
            rows = self.rows("take", until=until, fence=figures.fence, limit=limit - len(taken))
            figures.ready -= len(rows)
            figures.inflight += len(rows)
            figures.soonest = min(figures.soonest, until)
            today = self.now + figures.skew
            in_time = [row for row in rows if row[6] is None or row[6] >= today]
            if len(in_time) < len(rows):
                kept = {row[12] for row in in_time}
                for row in sorted((row for row in rows if row[12] not in kept), key=_in_order):
                    self._miss(row[12])
            taken += in_time
        taken.sort(key=_in_order)
        return self.jobs(taken, State.INFLIGHT)

    def _miss(self, pk: int) -> None:
        self.figures.deadline_missed += 1
        if self.settings.deadline_to_dead:
            self.bury(pk, TOO_LATE, self.now, unleased=1)
        else:
            self.finish(pk, "dropped")

    def held(self, job: Job) -> tuple[int, int, int] | None:
        """(attempt, max_attempts, cancelled) if the lease still holds: the token decides, never the id alone."""
        fence = job.token - self.figures.salt
        row = self.connection.execute(SQL["held"], (job.ref, self.queue, fence)).fetchone()
        if row is None:
            self.figures.ack_too_late += 1
            return None
        return row[0], row[1], row[2]

    def ack(self, jobs: Sequence[Job]) -> list[Job]:
        """Those whose lease was lost."""
        salt = self.figures.salt
        keys = [(job.ref, self.queue, job.token - salt) for job in jobs]
        lost = [
            job for job, key in zip(jobs, keys, strict=True) if not self.connection.execute(SQL["ack"], key).rowcount
        ]
        self.figures.inflight -= len(jobs) - len(lost)
        self.figures.acked += len(jobs) - len(lost)
        self.figures.ack_too_late += len(lost)
        return lost

    def release(self, jobs: Sequence[Job], delay: int) -> list[Job]:
        """Those whose lease was lost."""
        lost = []
        for job in jobs:
            held = self.held(job)
            if held is None:
                lost.append(job)
            elif held[2]:
                self.finish(job.ref, "cancelled")
            else:
                self.put_back(job.ref, held[0] - 1, self.now + delay, None)
        return lost

    def forward(self, job: Job, queue: int, settings: Settings) -> bool:
        """Done here and put into another queue of the file; done as cancelled if somebody asked for that."""
        if (held := self.held(job)) is None:
            return False
        if held[2]:
            self.finish(job.ref, "cancelled")
            return True
        there = Step(self.connection, queue, settings, self.now - self.figures.anchor)
        there.promote()
        if not there.exists(job.id):
            there.put([admit(onward(job), settings, there.now, there.figures.skew)])
        there.save()
        self.finish(job.ref, "acked")
        return True

    def extend(self, jobs: Sequence[Job], duration: int, too_late: int) -> list[Job]:
        figures = self.figures
        until = self.now + duration
        held = []
        for job in jobs:
            found = self.rows("extend", until=until, pk=job.ref, fence=job.token - figures.salt)
            held += self.jobs(found, State.INFLIGHT)
        figures.ack_too_late += too_late * (len(jobs) - len(held))
        figures.soonest = min(figures.soonest, until)
        return held

    def cancel(self, id: str) -> bool:
        row = self.connection.execute(SQL["find"], (self.queue, id)).fetchone()
        if row is None:
            return False
        state, pk = row[0], row[13]
        if state == INFLIGHT:
            self.change("mark_cancelled", pk=pk)
            return False
        self.change("remove", pk=pk)
        if state == READY:
            self.figures.ready -= 1
        else:
            self.figures.delayed -= 1
        self.figures.cancelled += 1
        return True

    def replay(self, limit: int | None, ids: frozenset[str] | None) -> int:
        figures = self.figures
        room = self.settings.capacity - figures.size
        limit = room if limit is None else min(limit, room)
        chosen: dict[str, int] = {}
        for pk, id in self.rows("dead_ids"):
            if len(chosen) >= limit:
                break
            wanted = (ids is None or id in ids) and id not in chosen
            if wanted and not self.exists(id):
                chosen[id] = pk
        for pk in chosen.values():
            self.change("replay", pk=pk, now=self.now, today=self.now + figures.skew)
            self.connection.execute(SQL["dead_remove"], (pk,))
        figures.dead -= len(chosen)
        figures.ready += len(chosen)
        return len(chosen)


def _in_order(row: tuple[Any, ...]) -> tuple[int, int]:
    """Higher priority first, then the place in line; UPDATE … RETURNING comes in any order."""
    return -row[2], row[12]
