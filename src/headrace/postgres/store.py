"""A queue in PostgreSQL as a store: the calls on the hot path are one statement each, the others one transaction.

Nobody holds a lock on a queue. Claims skip what others hold (SKIP LOCKED); figures are added up from what each
transaction says it changed; what time does is done by whoever comes first, and others skip it. The server's clock
decides, unless the caller brings one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from ..calls import Handle
from ..clock import SECOND
from ..core import admit, jobs_of
from ..errors import Unsupported
from ..job import Job, State, Stats
from ..queue import AsyncWithin, Capabilities, Within
from ..rules import TOO_LATE, TOTALS, onward, to_itself
from ..store import Store
from .arrays import Bigs, pack
from .connections import Connection
from .entrance import Entrance
from .hint import FRONT, Place
from .step import Step
from .within import within

T = TypeVar("T")


class PostgresStore(Entrance):
    """One handle's view; see :class:`headrace.store.Store`."""

    capabilities = Capabilities(durable=True, processes=True, machines=True, transactional=True)

    # Out

    def take(self, limit: int) -> list[Job]:
        self._begin()
        if self.settings.clock.steady() >= self._look_at:
            self._sweep()
        settings, skew = self.settings, self._skew
        taken: list[Job] = []
        while len(taken) < limit:
            news, began = self._ready.begin(), time.monotonic()
            place = self._hint.place(began)
            wanted = limit - len(taken)
            rows = self._one(
                "take",
                limit=wanted,
                lease=settings.lease_us,
                rank=place.rank,
                place=place.pk,
                before=None if self._own_clock else settings.clock.steady() + self._anchor + self._patience,
            )
            rows.sort(key=_in_order)
            ended = time.monotonic()
            self._hint.found(place, Place(~rows[0][2], rows[0][12]) if rows else None, ended, ended - began)
            late = []
            if rows:
                until = rows[0][9]
                self._falls_due(until)
                today = until - settings.lease_us + skew
                late = [row for row in rows if row[6] is not None and row[6] < today]
                if late:
                    self._miss(late)
                    rows = [row for row in rows if row[6] is None or row[6] >= today]
            taken += self._jobs(rows, State.INFLIGHT)
            short = len(rows) + len(late) < wanted
            self._ready.left(news, len(rows), more=not (short and place is FRONT))
            if short and place is not FRONT:
                self._hint.came(FRONT)  # there may be more before it
            elif short or not late:
                break
        return taken

    def _miss(self, rows: list[tuple[Any, ...]]) -> None:
        """Claimed, but their deadlines have passed."""

        def work(step: Step) -> None:
            jobs = [row[12] for row in rows]
            step.count(deadline_missed=len(jobs))
            if self.settings.deadline_to_dead:
                step.bury(jobs, [step.now] * len(jobs), TOO_LATE, unleased=1)
            else:
                step.finish(jobs, "dropped")

        self._plain_step(work)

    # Settling

    def ack(self, jobs: Sequence[Job]) -> list[Job]:
        self._begin()
        salt = self._salt
        keys = [job.ref for job in jobs]
        fences = [job.token - salt for job in jobs]

        alike = len(set(fences)) == 1 and self.ack_name == "ack"
        name = "ack_claim" if alike else self.ack_name
        given = {"jobs": pack(Bigs, keys), **({"fence": fences[0]} if alike else {"fences": pack(Bigs, fences)})}

        def step(connection: Connection, again: bool) -> set[int]:
            before = self._removed(connection, keys) if again else set[int]()
            values = {**self.given, **given, "count": len(jobs) - len(before)}
            return before.union([row[0] for row in connection.execute(self.sql[name], values, binary=True).fetchall()])

        gone = self.stock.run(step)
        self.room += len(gone)
        return _lost(jobs, gone)

    def _removed(self, connection: Connection, keys: list[int]) -> set[int]:
        """Of jobs whose first ack was not answered: those that are gone, so they were most likely acked by it. Waits
        for the end of that one, should it still be under way."""
        rows = connection.execute(self.sql["remaining"], {"queue": self.queue, "jobs": keys}, binary=True).fetchall()
        return set(keys) - {row[0] for row in rows}

    def _settle(self, job: Job, how: str, delay: int = 0, error: str | None = None) -> bool:
        self._begin()
        now, _, fate, _ = self._one_once("settle", **self.settling(job, how, delay, error))[0]
        if fate == "back" and delay:
            self._falls_due(now + delay)
        elif fate == "back":
            self._hint.came(FRONT)
            self._ready.came(1)
        elif fate is not None:
            self.room += 1
        return fate is not None

    def settling(self, job: Job, how: str, delay: int, error: str | None) -> dict[str, object]:
        """What ``settle.sql`` takes."""
        return {
            "job": job.ref,
            "fence": self.fence(job),
            "how": how,
            "delay": delay,
            "error": error,
            "dead_capacity": self.settings.dead_capacity,
        }

    def nack(self, job: Job, delay: int, error: str | None) -> bool:
        return self._settle(job, "nack", delay, error)

    def release(self, jobs: Sequence[Job], delay: int) -> list[Job]:
        self._begin()
        rows = self._one_once("release", **self.releasing(jobs, delay))
        held = {pk: cancelled for _, _, pk, cancelled, _ in rows if pk is not None}
        gone = sum(held.values())
        self.room += gone
        back = len(held) - gone
        if back and delay:
            self._falls_due(rows[0][0] + delay)
        elif back:
            self._hint.came(FRONT)
            self._ready.came(back)
        return _lost(jobs, set(held))

    def releasing(self, jobs: Sequence[Job], delay: int) -> dict[str, object]:
        """What ``release.sql`` takes: each lease once."""
        leases = list(dict.fromkeys((job.ref, self.fence(job)) for job in jobs))
        return {
            "jobs": [ref for ref, _ in leases],
            "fences": [fence for _, fence in leases],
            "count": len(jobs),
            "delay": delay,
        }

    def bury(self, job: Job, error: str | None) -> bool:
        return self._settle(job, "bury", error=error)

    def abandon(self, job: Job) -> bool:
        return self._settle(job, "cancel")

    def forward(self, job: Job, to: Store) -> bool:
        if not isinstance(to, PostgresStore) or (to.stock.dsn, to.schema) != (self.stock.dsn, self.schema):
            raise Unsupported(f"forward: {to!r} is not the database and schema of {self!r}: no transaction spans two")
        if to.settings.queue == self.settings.queue:
            raise to_itself(self.settings.queue)
        to._begin()

        def work(step: Step) -> bool:
            held = step.held(job, self.fence(job))
            if held is None:
                return False
            if held.cancelled:
                step.finish([held.pk], "cancelled")
                return True
            there = Step(step.connection, to.sql, to.given, to.settings)
            if not there.rows("exists", ids=[job.id]):
                goes = onward(job)
                now = there.now
                to._put_exactly(there, [goes], [admit(goes, to.settings, now, there.skew)], now)
            there.save()
            step.finish([held.pk], "acked")
            return True

        return self._step(work)

    def extend(self, jobs: Sequence[Job], duration: int, too_late: int) -> list[Job]:
        self._begin()
        rows = self._one(
            "extend",
            jobs=[job.ref for job in jobs],
            fences=[self.fence(job) for job in jobs],
            duration=duration,
            too_late=too_late,
            count=len(jobs),
        )
        if rows:
            self._falls_due(min([row[9] for row in rows]))
            order = {job.ref: number for number, job in enumerate(jobs)}
            rows.sort(key=lambda row: order[row[12]])
        return self._jobs(rows, State.INFLIGHT)

    # Looking, and the rest

    def _jobs(self, rows: Iterable[Sequence[Any]], state: State) -> list[Job]:
        return jobs_of(rows, state, self.settings.queue, self._salt, self._skew)

    def cancel(self, id: str) -> bool:
        def work(step: Step) -> bool:
            rows = step.rows("cancel", id=id)
            if not rows:
                return False
            pk, delayed, leased = rows[0]
            if leased:
                step.do("mark_cancelled", job=pk)
                return False
            step.do("remove", jobs=[pk])
            step.count(delayed=-int(delayed), ready=-int(not delayed), cancelled=1)
            self.room += 1
            return True

        return self._step(work)

    def find(self, id: str) -> Job | None:
        self._begin()
        for delayed, *row, leased in self._one("find", id=id):
            return self._jobs([row], State.INFLIGHT if leased else State.DELAYED if delayed else State.READY)[0]
        dead = self._jobs(self._one("find_dead", id=id), State.DEAD)
        return dead[0] if dead else None

    def dead(self, limit: int, after: int) -> list[Job]:
        self._begin()
        return self._jobs(self._one("dead", limit=limit, after=after), State.DEAD)

    def take_dead(self, limit: int) -> list[Job]:
        def work(step: Step) -> list[Job]:
            rows = sorted(step.rows("take_dead", limit=limit), key=lambda row: int(row[12]))
            step.count(dead=-len(rows), taken=len(rows))
            return self._jobs(rows, State.DEAD)

        return self._step(work)

    def replay(self, limit: int | None, ids: frozenset[str] | None) -> int:
        def work(step: Step) -> int:
            step.connection.execute("SELECT pg_advisory_xact_lock(%s)", (~self.bell,))
            room = max(0, self.settings.capacity - step.rows("size")[0][0])
            wanted = {
                "limit": room if limit is None else min(limit, room),
                "ids": None if ids is None else list(ids),
                "today": step.now + step.skew,
                "now": step.now,
            }
            count = step.do("replay", **wanted)
            step.count(dead=-count, ready=count)
            step.came += count
            return count

        return self._step(work)

    def set_paused(self, paused: bool) -> None:
        self._begin()
        self._one("set_paused", paused=paused)
        if not paused:
            self._look()

    def stats(self) -> Stats:
        self._begin()
        began = self._ready.begin()
        now, oldest, paused, ready, delayed, inflight, dead, *totals = self._one("stats")[0]
        self._ready.counted(began, 0 if paused else ready)
        self.room = self.settings.capacity - ready - delayed - inflight
        return Stats(
            ready=ready,
            delayed=delayed,
            inflight=inflight,
            dead=dead,
            oldest_ready=0.0 if oldest is None else (now - oldest) / SECOND,
            capacity=self.settings.capacity,
            paused=paused,
            **dict(zip(TOTALS, totals, strict=True)),
        )

    def within(self, connection: object, handle: Handle) -> Within | AsyncWithin:
        """The calls that can be made inside the caller's own transaction. ConfigError for a connection of no use."""
        return within(self, connection, handle)


def _in_order(row: tuple[Any, ...]) -> tuple[int, int]:
    """Higher priority first, then the place in line; UPDATE … RETURNING comes in any order."""
    return -row[2], row[12]


def _lost(jobs: Sequence[Job], held: set[int]) -> list[Job]:
    """Those that are not among the held; a job that is given twice is held once only, by its latest lease."""
    if len(held) == len(jobs):
        return []
    latest = {job.ref: job.token for job in sorted(jobs, key=lambda job: job.token)}
    lost = []
    for job in jobs:
        if job.ref in held and job.token == latest[job.ref]:
            held.discard(job.ref)
        else:
            lost.append(job)
    return lost
