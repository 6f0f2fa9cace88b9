"""How jobs come in: checked, as arrays, in one statement; and, where there is little room, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from ..clock import FAR, LATEST, SECOND
from ..core import admit, columns_of
from ..errors import DuplicateJob
from ..job import Job
from ..overflow import DropNewest, DropOldest
from ..record import Record, refuse_duplicates
from ..rules import no_room
from .arrays import packed
from .connections import Connection, Cursor
from .hint import Place
from .step import Step
from .upkeep import Upkeep

PART = 1_000
"""Jobs that are packed and sent at a time."""
CREDIT = 16
"""A producer may put a sixteenth of the room it last saw before it looks again, for there may be others."""


class Entrance(Upkeep):
    """``room`` is what was last seen of it."""

    def put(self, jobs: Sequence[Job]) -> None:
        self._begin()
        records, now = self._admitted(jobs)
        if not self._has_credit(len(records)):
            self._plain_step(lambda step: self._put_exactly(step, jobs, records, now))
            return
        plain = len(records) == 1 and not records[0].absolute and jobs[0].enqueued_at is None

        def step(connection: Connection, again: bool) -> list[tuple[Any, ...]]:
            try:
                if plain:
                    values = {**self.given, **self._values(jobs[0], records[0], now)}
                    return connection.execute(self.sql["put_one"], values, binary=True).fetchall()
                return self._put_in_parts(connection, jobs, records, now)
            except psycopg.errors.UniqueViolation as error:
                if again and (arrived := self._arrived(connection, records)):
                    return arrived
                raise self._duplicate(connection, records) from error

        self._ready.came(self._entered(self.stock.run(step), records))

    def _put_in_parts(
        self, connection: Connection, jobs: Sequence[Job], records: Sequence[Record], now: int
    ) -> list[tuple[Any, ...]]:
        """In one transaction, what ``put.sql`` says of each part: while the server stores one, the next is packed."""
        size = PART if self.stock.pipelines else len(records) or 1
        parts = [slice(first, first + size) for first in range(0, len(records) or 1, size)]

        def send(part: slice, prepare: bool | None = None) -> Cursor:
            values = {**self.given, **packed(self._columns(jobs[part], records[part], now))}
            return connection.execute(self.sql["put"], values, binary=True, prepare=prepare)

        if len(parts) == 1:
            return send(parts[0]).fetchall()
        with connection.pipeline():
            try:
                # Not prepared: behind a part that fails the server would skip that, and the driver would not know.
                answers = [send(part, prepare=False) for part in parts]
            except psycopg.Error:
                raise
            except BaseException:
                connection.close()  # else the end of the pipeline would commit what was sent
                raise
        return [row for answer in answers for row in answer.fetchall()]

    def _arrived(self, connection: Connection, records: Sequence[Record]) -> list[tuple[Any, ...]]:
        """Of a batch whose first try was not answered: what ``put.sql`` would have said, where it is there all the
        same, else nothing."""
        given = {"ids": [record.id for record in records], "payloads": [record.payload for record in records]}
        return connection.execute(self.sql["arrived"], {**self.given, **given}, binary=True).fetchall()

    def columns(self, jobs: Sequence[Job]) -> tuple[Sequence[Record], dict[str, object]]:
        """The batch checked, and as ``put.sql`` and ``put_within.sql`` take it. InvalidJob."""
        records, now = self._admitted(jobs)
        return records, self._columns(jobs, records, now)

    def _admitted(self, jobs: Sequence[Job]) -> tuple[list[Record], int]:
        """The batch checked, and the queue time, as it is known here, by which that was done. InvalidJob."""
        now = self.settings.clock.steady() + self._anchor
        return [admit(job, self.settings, now, self._skew) for job in jobs], now

    def _columns(self, jobs: Sequence[Job], records: Sequence[Record], now: int) -> dict[str, object]:
        """A batch as the arrays that ``put.sql`` takes. Delays travel as durations and become moments there, where
        the clock is."""
        skew = self._skew
        ids, payloads, priorities, attempts, absolutes, dues, deadlines, enqueueds = columns_of(records)
        if self.settings.default_deadline is not None:  # counted from the moment when it is due there
            deadlines = [FAR if job.deadline is None else latest for job, latest in zip(jobs, deadlines, strict=True)]
        return {
            "ids": ids,
            "payloads": payloads,
            "priorities": priorities,
            "attempts": attempts,
            "absolutes": absolutes,
            "ats": [due + skew if absolute else due - now for due, absolute in zip(dues, absolutes, strict=True)],
            "deadlines": [None if deadline == FAR else deadline for deadline in deadlines],
            "enqueueds": [None if enqueued == now else enqueued + skew for enqueued in enqueueds],
            **self._for_all,
        }

    def _values(self, job: Job, record: Record, now: int) -> dict[str, object]:
        """A job as ``put_one.sql`` takes it."""
        return {
            "id": record.id,
            "payload": record.payload,
            "priority": record.priority,
            "attempt": record.max_attempts,
            "at": record.due - now,
            "deadline": None if job.deadline is None else record.deadline,
            **self._for_all,
        }

    @property
    def _for_all(self) -> dict[str, object]:
        lifetime = self.settings.default_deadline
        return {
            "lifetime": None if lifetime is None else round(lifetime * SECOND),
            "latest": LATEST,
            "bell": self.bell,
            "channel": self.channel,
        }

    def _entered(self, rows: Sequence[tuple[Any, ...]], records: Sequence[Record]) -> int:
        """What ``put.sql`` says of each part; how many of the jobs are ready."""
        for now, skew, _, soonest, _ in rows:
            self._seen(now, skew)
            self._falls_due(soonest)
        self.spend(len(records))
        for priority in {record.priority for record in records}:
            self._hint.came(Place(~priority, 2**62))  # behind all of its kind
        return sum(row[2] for row in rows)

    def _has_credit(self, count: int) -> bool:
        """Is there so much room that nobody need be asked? Near the limit, one after the other has to look."""
        if not self.in_credit(count):
            self._measure()
            self.give_credit()
        return count <= self._credit

    def spend(self, count: int) -> None:
        self.room -= count
        self._credit -= count

    def in_credit(self, count: int) -> bool:
        return count <= self._credit and self.settings.clock.steady() < self._credit_until

    def give_credit(self) -> None:
        """By the room that was just seen."""
        self._credit = max(0, self.room - max(1_000, self.settings.capacity // 10)) // CREDIT
        self._credit_until = self.settings.clock.steady() + SECOND

    def _put_exactly(self, step: Step, jobs: Sequence[Job], records: Sequence[Record], now: int) -> None:
        """When it matters how many there are: nobody else may come in meanwhile."""
        settings = self.settings
        step.connection.execute("SELECT pg_advisory_xact_lock(%s)", (~self.bell,))
        if step.again and (arrived := self._arrived(step.connection, records)):
            step.came += self._entered(arrived, records)
            return
        size = step.rows("size")[0][0]
        over = size + len(records) - settings.capacity
        if over > 0:
            if not isinstance(settings.overflow, (DropOldest, DropNewest)):
                raise no_room(settings.queue, size, settings.capacity, len(records))
            ids = [record.id for record in records]
            taken = {row[0] for row in step.rows("exists", ids=ids)}
            refuse_duplicates(records, taken.__contains__)  # nobody makes room for what cannot come in
            if isinstance(settings.overflow, DropNewest):
                lost = min(over, len(records))
                step.count(enqueued=lost, dropped=lost)
                jobs, records = jobs[: len(records) - lost], records[: len(records) - lost]
            else:
                gone = step.rows("drop_oldest", limit=over)
                if len(gone) < over:
                    raise no_room(settings.queue, size, settings.capacity, len(records))
                delayed = sum(row[0] for row in gone)
                step.count(delayed=-delayed, ready=delayed - len(gone), dropped=len(gone))
        try:
            with step.connection.transaction():
                rows = step.rows("put", **packed(self._columns(jobs, records, now)))
        except psycopg.errors.UniqueViolation as error:
            raise self._duplicate(step.connection, records) from error
        step.came += self._entered(rows, records)
        self.room = settings.capacity - size - len(records) + max(over, 0)

    def _duplicate(self, connection: Connection, records: Sequence[Record]) -> DuplicateJob:
        ids = [record.id for record in records]
        rows = connection.execute(self.sql["exists"], {"queue": self.queue, "ids": ids}).fetchall()
        taken, seen = {row[0] for row in rows}, set[str]()
        for id in ids:
            if id in taken or id in seen:
                return DuplicateJob(id)
            seen.add(id)
        return DuplicateJob(ids[0])
