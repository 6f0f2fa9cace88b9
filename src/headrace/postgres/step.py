"""One transaction under way: the moves between the places that the rarer calls are made of, and what they change in
the figures. The calls on the hot path are one statement each and do without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..clock import SECOND
from ..job import Job
from ..rules import EXPIRED, TOTALS
from ..settings import Settings
from .connections import Connection

FIGURES = ("ready", "delayed", "inflight", "dead", *TOTALS)


class Held(NamedTuple):
    """A row whose lease is ours to end, in the order of ``held.sql``."""

    pk: int
    attempt: int
    max_attempts: int
    cancelled: bool
    until: int


class Step:
    """Within a transaction that the caller opened; ``save`` before its end."""

    def __init__(
        self,
        connection: Connection,
        sql: dict[str, bytes],
        given: Mapping[str, object],
        settings: Settings,
        again: bool = False,
    ) -> None:
        self.connection = connection
        self.again = again
        """An earlier try was not answered: it may have been committed."""
        self.sql = sql
        self.given = given
        """What every statement takes."""
        self.settings = settings
        self.now, self.skew = self.rows("now")[0]
        self.change_by = dict.fromkeys(FIGURES, 0)
        self.came = 0
        """So many jobs will be ready that were not, once this is committed."""

    def rows(self, name: str, **values: object) -> list[tuple[Any, ...]]:
        return self.connection.execute(self.sql[name], {**self.given, **values}, binary=True).fetchall()

    def do(self, name: str, **values: object) -> int:
        """How many rows it touched."""
        return self.connection.execute(self.sql[name], {**self.given, **values}).rowcount

    def count(self, **figures: int) -> None:
        for name, change in figures.items():
            self.change_by[name] += change

    def save(self) -> int | None:
        """Counts, and rings for what became ready. The number of the transaction; None where there was nothing to
        count."""
        if not any(self.change_by.values()):
            return None
        number: int = self.rows("count", **self.change_by)[0][0]
        return number

    # Moves of jobs in flight, their leases given up

    def held(self, job: Job, fence: int) -> Held | None:
        """If the lease still holds: the fence decides, never the id alone."""
        rows = self.rows("held", job=job.ref, fence=fence, now=self.now)
        if not rows:
            self.count(ack_too_late=1)
            return None
        return Held(*rows[0])

    def failed(self, rows: Sequence[Held], dues: Sequence[int], error: str | None) -> None:
        """Cancelled if somebody asked for that, back in its old place in line while attempts are left, else dead."""
        gone, dead, died, back = [], [], [], []
        for row, due in zip(rows, dues, strict=True):
            if row.cancelled:
                gone.append(row.pk)
            elif row.attempt >= row.max_attempts:
                dead.append(row.pk)
                died.append(min(due, self.now))
            else:
                back.append((row.pk, row.attempt, due))
        if gone:
            self.finish(gone, "cancelled")
        if dead:
            self.bury(dead, died, error)
        if back:
            self.put_back(back, error)

    def put_back(self, moves: Sequence[tuple[int, int, int]], error: str | None) -> None:
        """(job, attempt, due) of each."""
        jobs, attempts, dues = (list(column) for column in zip(*moves, strict=True))
        self.do("put_back", jobs=jobs, attempts=attempts, dues=dues, errors=[error] * len(moves), now=self.now)
        later = sum(due > self.now for due in dues)
        self.count(inflight=-len(moves), delayed=later, ready=len(moves) - later)
        self.came += len(moves) - later

    def finish(self, jobs: list[int], total: str) -> None:
        self.do("remove", jobs=jobs)
        self.count(inflight=-len(jobs), **{total: len(jobs)})

    def bury(self, jobs: list[int], dieds: list[int], error: str | None, unleased: int = 0) -> None:
        """Into the dead letters; the ids are free again. When they are full, the oldest stay."""
        room = None
        if self.settings.dead_capacity is not None:
            room = max(0, self.settings.dead_capacity - int(self.rows("dead_count")[0][0]) - self.change_by["dead"])
        kept = self.do("bury", jobs=jobs, dieds=dieds, errors=[error] * len(jobs), unleased=unleased, room=room)
        self.count(inflight=-len(jobs), dead=kept, dead_total=len(jobs), dead_dropped=len(jobs) - kept)

    def expire(self, limit: int) -> bool:
        """End the leases that are over; False: none is left."""
        lapsed = self.rows("lapsed", now=self.now, limit=limit)
        jobs = [job for row in lapsed for job in row[0]]
        over = [Held(*row) for row in self.rows("expired", jobs=jobs, now=self.now, pause=SECOND)] if jobs else []
        if over:
            self.count(expired_leases=len(over))
            over.sort(key=lambda row: (row.until, row.pk))
            self.failed(over, [row.until for row in over], EXPIRED)
        return len(lapsed) == limit
