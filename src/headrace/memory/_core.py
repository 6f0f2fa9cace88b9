"""The rules of the queue over a table and lines: no I/O, no lock, no clock; ``now`` comes in.

Every unfinished record is in ``jobs`` (by id) exactly once, and in one of three lines: ``delayed``, ``ready`` and
``leases``; its ``place`` says in which. Every call begins with ``promote``, which moves what is due, and costs one
comparison while ``soonest`` has not come: a moment before which nothing can be due.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..admit import admit
from ..clock import FAR
from ..errors import QueueFull
from ..job import Job, Stats
from ..native import same
from ..overflow import DropNewest, DropOldest, Overflow
from ..record import DEAD, DELAYED, INFLIGHT, READY, Record, refuse_duplicates, snapshot
from ..rules import EXPIRED, TOO_LATE, TOTALS, no_room, onward
from ..settings import Settings
from ._dead import DeadLetters
from ._delayed import Block, Delayed
from ._leases import Leases
from ._ready import Ready
from ._table import Table

FEW = 32
"""A due block of no more records is moved one by one: quicker than keeping it."""
TIDY = 1000
"""Jobs between two moments at which an empty table is made small."""


class Core:
    """One queue's state. Methods that settle answer False, and change nothing, when the lease is lost."""

    def __init__(self, settings: Settings, *, salt: int, fence: int = 0) -> None:
        self.settings = settings
        self.queue = settings.queue
        self.capacity = settings.capacity
        self.lease = settings.lease_us
        self.salt = salt
        self.fence = fence
        self.seq = self.tidy = 0
        self.skew = 0
        self.paused = False
        self.jobs = Table()
        self.ready = Ready(self.jobs)
        self.delayed = Delayed()
        self.leases = Leases(self.jobs)
        self.soonest = FAR
        self.moved = -FAR
        """When ``promote`` last moved something: what is delayed until then is ready, in a block that fell due."""
        self.by_calendar = False
        """Some delayed job may have been asked for by calendar."""
        limit = settings.dead_capacity
        self.dead = DeadLetters(settings.capacity if limit is None else limit)
        self.totals: dict[str, Any] = dict.fromkeys(TOTALS, 0)
        self.enqueued = self.acked = 0
        """Two totals that are counted too often for a dictionary."""

    # Moves between the places. Each leaves one and enters one (I1).

    def _enter_delayed(self, record: Record, due: int) -> None:
        record.place = DELAYED
        record.due = record.run_at = due
        self.delayed.add(record)
        if due < self.soonest:
            self.soonest = due
        if record.absolute:
            self.by_calendar = True

    def _enter_ready(self, record: Record) -> None:
        self.ready.push(record)

    def _enter_line(self, record: Record, due: int, now: int) -> None:
        """Ready at once when ``due`` has come, else delayed."""
        if due <= now:
            record.due = record.run_at = due
            self._enter_ready(record)
        else:
            self._enter_delayed(record, due)

    def _leave(self, record: Record) -> None:
        """Out of its line, from the middle; the caller says where it goes."""
        if record.place == INFLIGHT:
            self.leases.remove(record)
        elif record.place == READY:
            self.ready.remove(record)
        else:
            self.delayed.remove(record)

    def _bring(self, record: Record) -> None:
        """One that fell due in a block is made like any other that is ready, before somebody touches it."""
        if record.place == DELAYED and record.due <= self.moved:
            self.ready.bring(record)

    def _bury(self, record: Record, error: str | None, died: int) -> None:
        """Into the dead letters; the id is free again. When they are full, the oldest stay."""
        self._free(record)
        if error is not None:
            record.last_error = error
        record.place = DEAD
        record.due = died
        self.totals["dead_total"] += 1
        if not self.dead.add(record):
            self.totals["dead_dropped"] += 1

    def _finish(self, record: Record, total: str) -> None:
        self._free(record)
        self.totals[total] += 1

    def _free(self, record: Record) -> None:
        """The id is free again."""
        self.jobs.leave(record)
        if len(self.jobs) == 0:
            self._tidy()

    def _tidy(self) -> None:
        """A table that was large once keeps its room until it is told."""
        if self.seq > self.tidy:
            self.jobs.clear()
            self.tidy = self.seq + TIDY

    def _retry(self, record: Record, due: int, now: int, error: str | None) -> None:
        """After a failed attempt, its lease given up already: cancelled if somebody asked for that, back in
        its old place in line while attempts are left, else dead."""
        if error is not None:
            record.last_error = error
        if record.cancelled:
            self._finish(record, "cancelled")
        elif record.attempt >= record.max_attempts:
            self._bury(record, None, min(due, now))
        else:
            self._enter_line(record, due, now)

    # What time does.

    def promote(self, now: int) -> None:
        """Everything that is due, in one call: delayed jobs become ready, leases that are over end."""
        if now >= self.soonest:
            self._promote(now)

    def _promote(self, now: int) -> None:
        while (block := self.delayed.due_block(now)) is not None:
            if len(block.records) > FEW:
                self.ready.push_block(block)
            else:
                self._move(block)
        self.moved = now
        for record in self.leases.over(now):
            self.totals["expired_leases"] += 1
            self._retry(record, record.due, now, EXPIRED)
        if not self.delayed.count:
            self.by_calendar = False
        self.soonest = min(self.delayed.soonest(), self.leases.soonest())

    def _move(self, block: Block) -> None:
        for record in block.records:
            self._enter_ready(record)

    def step(self, change: int, now: int) -> None:
        """The calendar stepped by ``change``: what was asked for by calendar moves with it, nothing else."""
        self.skew += change
        for record in [record for record in self.delayed.all() if record.absolute]:
            self._leave(record)
            self._enter_line(record, record.due - change, now)

    # The calls.

    def put(self, records: Sequence[Record], policy: Overflow, now: int) -> None:
        """All or none. QueueFull also where the policy is to wait: the caller waits and tries again."""
        self.promote(now)
        over = len(self.jobs) + len(records) - self.capacity
        if over > 0 and not isinstance(policy, (DropOldest, DropNewest)):
            raise self._full(len(records))
        refuse_duplicates(records, self.jobs.__contains__)
        if over > 0 and isinstance(policy, DropNewest):
            kept = len(records) - over
            self.enqueued += over
            self.totals["dropped"] += over
            records = records[: max(kept, 0)]
        elif over > 0:
            if over > self.ready.count + self.delayed.count:
                raise self._full(len(records))
            self._drop_oldest(over)
        for record in records:
            self.jobs.enter(record)
            self._add(record, now)

    def put_one(self, record: Record, now: int) -> bool:
        """The plain case of ``put``. False, and nothing is changed: it takes a closer look."""
        self.promote(now)
        if len(self.jobs) >= self.capacity or not self.jobs.enter(record):
            return False
        self._add(record, now)
        return True

    def put_many(self, records: list[Record], now: int) -> bool:
        """As ``put_one``, for all of them or none."""
        self.promote(now)
        if len(self.jobs) + len(records) > self.capacity:
            return False
        for done, record in enumerate(records):
            if not self.jobs.enter(record):
                for added in records[:done]:
                    self._leave(added)
                    self._free(added)
                self.enqueued -= done
                return False
            self._add(record, now)
        return True

    def _add(self, record: Record, now: int) -> None:
        self.seq += 1
        record.seq = self.seq
        self.enqueued += 1
        self._enter_line(record, record.due, now)

    def _full(self, wanted: int) -> QueueFull:
        return no_room(self.queue, len(self.jobs), self.capacity, wanted)

    def _drop_oldest(self, count: int) -> None:
        for _ in range(count):
            record = self.ready.oldest() or self.delayed.oldest()
            assert record is not None
            self._bring(record)
            self._leave(record)
            self._finish(record, "dropped")

    def take(self, limit: int, now: int) -> list[Job]:
        """Lease up to ``limit`` jobs, in order."""
        self.promote(now)
        taken: list[Job] = []
        while len(taken) < limit and (job := self._next(now)) is not None:
            taken.append(job)
        return taken

    def take_one(self, now: int) -> Job | None:
        self.promote(now)
        return self._next(now)

    def _next(self, now: int) -> Job | None:
        """Lease the job whose turn it is."""
        if self.paused:
            return None
        while (record := self.ready.pop()) is not None:
            if now + self.skew > record.latest:
                self._miss(record, now)
                continue
            record.attempt += 1
            self.fence += 1
            record.fence = self.fence
            record.due = now + self.lease
            self.leases.add(record)
            if record.due < self.soonest:
                self.soonest = record.due
            return snapshot(record, self.queue, self.salt, self.skew)
        return None

    def _miss(self, record: Record, now: int) -> None:
        self.totals["deadline_missed"] += 1
        if self.settings.deadline_to_dead:
            self._bury(record, TOO_LATE, now)
        else:
            self._finish(record, "dropped")

    def _held(self, job: Job, now: int, too_late: int = 1) -> Record | None:
        """The record, if ``job``'s lease still holds it: the token decides, never the id alone."""
        self.promote(now)
        record = self._holder(job)
        if record is None:
            self.totals["ack_too_late"] += too_late
        return record

    def _holder(self, job: Job) -> Record | None:
        record = self.jobs.find(job.id)
        if record is not None and record.place == INFLIGHT and same(record.fence + self.salt, job.token):
            return record
        return None

    def _give_up(self, job: Job, now: int) -> Record | None:
        """As ``_held``, and the lease is over with that."""
        record = self._held(job, now)
        if record is not None:
            self._leave(record)
        return record

    def ack(self, job: Job, now: int) -> bool:
        if (record := self._give_up(job, now)) is None:
            return False
        self._free(record)
        self.acked += 1
        return True

    def ack_one(self, job: Job, now: int) -> bool:
        """As ``ack``, but that a lost lease is not counted."""
        self.promote(now)
        record = self._holder(job)
        if record is None:
            return False
        self.leases.remove(record)
        self._free(record)
        self.acked += 1
        return True

    def ack_all(self, jobs: Sequence[Job], now: int) -> list[Job]:
        """Those whose lease was lost."""
        return [job for job in jobs if not self.ack(job, now)]

    def nack(self, job: Job, delay: int, error: str | None, now: int) -> bool:
        if (record := self._give_up(job, now)) is None:
            return False
        if record.attempt < record.max_attempts and not record.cancelled:
            self.totals["retried"] += 1
            record.absolute = False
        self._retry(record, now + delay, now, error)
        return True

    def release(self, job: Job, delay: int, now: int) -> bool:
        if (record := self._give_up(job, now)) is None:
            return False
        record.attempt -= 1
        record.absolute = False
        if record.cancelled:
            self._finish(record, "cancelled")
        else:
            self._enter_line(record, now + delay, now)
        return True

    def bury(self, job: Job, error: str | None, now: int) -> bool:
        if (record := self._give_up(job, now)) is None:
            return False
        self._bury(record, error, now)
        return True

    def abandon(self, job: Job, now: int) -> bool:
        """The holder of the lease ends the job as cancelled."""
        if (record := self._give_up(job, now)) is None:
            return False
        self._finish(record, "cancelled")
        return True

    def forward(self, job: Job, now: int, to: Core, then: int) -> bool:
        """Done here and put ``to`` there, whose time it is ``then``; done as cancelled if somebody asked for that."""
        if (record := self._held(job, now)) is None:
            return False
        to.promote(then)
        if not record.cancelled and job.id not in to.jobs:
            to.put([admit(onward(job), to.settings, then, to.skew)], to.settings.overflow, then)
        self._leave(record)
        if record.cancelled:
            self._finish(record, "cancelled")
        else:
            self._free(record)
            self.acked += 1
        return True

    def extend(self, job: Job, duration: int, too_late: int, now: int) -> Job | None:
        if (record := self._held(job, now, too_late)) is None:
            return None
        self.leases.remove(record)
        record.due = now + duration
        self.leases.add(record)
        if record.due < self.soonest:
            self.soonest = record.due
        return snapshot(record, self.queue, self.salt, self.skew)

    def cancel(self, id: str, now: int) -> bool:
        self.promote(now)
        record = self.jobs.find(id)
        if record is None:
            return False
        if record.place == INFLIGHT:
            record.cancelled = True
            return False
        self._bring(record)
        self._leave(record)
        self._finish(record, "cancelled")
        return True

    def look_dead(self, limit: int, after: int, now: int) -> list[Job]:
        self.promote(now)
        found: list[Job] = []
        if limit > 0:
            for record in self.dead.since(after + 1):
                found.append(snapshot(record, self.queue, self.salt, self.skew))
                if len(found) == limit:
                    break
        return found

    def take_dead(self, limit: int, now: int) -> list[Job]:
        found = self.look_dead(limit, 0, now)
        for job in found:
            del self.dead[job.ref]
        self.totals["taken"] += len(found)
        return found

    def replay(self, limit: int | None, ids: frozenset[str] | None, now: int) -> int:
        self.promote(now)
        room = self.capacity - len(self.jobs)
        limit = room if limit is None else min(limit, room)
        chosen: list[Record] = []
        names: set[str] = set()
        for record in self.dead.since(0):
            if len(chosen) >= limit:
                break
            if (ids is None or record.id in ids) and record.id not in self.jobs and record.id not in names:
                chosen.append(record)
                names.add(record.id)
        for record in chosen:
            del self.dead[record.ref]
            self.seq += 1
            record.seq = self.seq
            record.ref = record.attempt = 0
            record.absolute = record.cancelled = False
            if now + self.skew > record.latest:
                record.latest = FAR  # it is wanted although it is late
            self.jobs.enter(record)
            self._enter_line(record, now, now)
        return len(chosen)

    def find(self, id: str, now: int) -> Job | None:
        self.promote(now)
        record = self.jobs.find(id)
        if record is None:
            record = self.dead.last(id)
        else:
            self._bring(record)
        return None if record is None else snapshot(record, self.queue, self.salt, self.skew)

    def pause(self, paused: bool, now: int) -> None:
        self.promote(now)
        self.paused = paused

    def drop_delayed(self) -> int:
        """The end of a queue that cannot keep what is not due yet."""
        gone = self.delayed.all()
        for record in gone:
            self._leave(record)
            self._finish(record, "dropped")
        return len(gone)

    def stats(self, now: int) -> Stats:
        self.promote(now)
        oldest = self.ready.oldest()
        totals = self.totals | {"enqueued": self.enqueued, "acked": self.acked}
        return Stats(
            ready=self.ready.count,
            delayed=self.delayed.count,
            inflight=self.leases.count,
            dead=len(self.dead),
            oldest_ready=0.0 if oldest is None else (now - oldest.enqueued) / 1_000_000,
            capacity=self.capacity,
            paused=self.paused,
            **totals,
        )
