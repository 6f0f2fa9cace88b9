"""The rules of the queue over plain dictionaries and heaps: no I/O, no lock, no clock; ``now`` comes in.

Every unfinished record is in ``jobs`` (by id) exactly once, and its ``state`` says where it is; the heaps only
order ids. ``due`` of a delayed record is when it becomes ready, of one in flight when its lease is over: both
wait on the same line, and ``soonest`` is a moment before which nothing on it can be due. Every call begins with
``promote``, which costs one comparison while that moment has not come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..admit import admit
from ..clock import FAR
from ..errors import QueueFull
from ..job import Job, State, Stats
from ..overflow import DropNewest, DropOldest, Overflow
from ..record import Record, refuse_duplicates, snapshot
from ..rules import EXPIRED, TOO_LATE, TOTALS, no_room, onward
from ..settings import Settings
from ._dead import DeadLetters
from ._heaps import Entry, LazyHeap

DELAYED, READY, INFLIGHT, DEAD = State.DELAYED, State.READY, State.INFLIGHT, State.DEAD


class Core:
    """One queue's state. Methods that settle answer False, and change nothing, when the lease is lost."""

    def __init__(self, settings: Settings, *, salt: int, fence: int = 0) -> None:
        self.settings = settings
        self.lease = settings.lease_us
        self.salt = salt
        self.fence = fence
        self.seq = 0
        self.skew = 0
        self.paused = False
        self.jobs: dict[str, Record] = {}
        self.waiting = LazyHeap(self._is_ready)
        self.ages = LazyHeap(self._is_ready)
        self.delayed = LazyHeap(self._is_delayed)
        self.delayed_ages = LazyHeap(self._is_delayed_since)
        self.leases = LazyHeap(self._is_leased)
        self.soonest = FAR
        self.by_calendar = False
        """Some delayed job may have been asked for by calendar."""
        self.ready_count = self.delayed_count = self.inflight_count = 0
        limit = settings.dead_capacity
        self.dead = DeadLetters(settings.capacity if limit is None else limit)
        self.totals: dict[str, Any] = dict.fromkeys(TOTALS, 0)

    # Is what a heap entry stands for still so?

    def _is_ready(self, entry: Entry) -> bool:
        record = self.jobs.get(entry[2])
        return record is not None and record.seq == entry[1] and record.state is READY

    def _is_delayed(self, entry: Entry) -> bool:
        record = self.jobs.get(entry[2])
        return record is not None and record.due == entry[0] and record.state is DELAYED and record.seq == entry[1]

    def _is_delayed_since(self, entry: Entry) -> bool:
        record = self.jobs.get(entry[2])
        return record is not None and record.seq == entry[1] and record.state is DELAYED

    def _is_leased(self, entry: Entry) -> bool:
        record = self.jobs.get(entry[2])
        return record is not None and record.due == entry[0] and record.state is INFLIGHT and record.seq == entry[1]

    # Moves between the places. Each leaves one and enters one (I1).

    def _enter_ready(self, record: Record) -> None:
        record.state = READY
        self.ready_count += 1
        self.waiting.push((-record.priority, record.seq, record.id))
        self.ages.push((record.enqueued, record.seq, record.id))

    def _enter_delayed(self, record: Record, due: int) -> None:
        record.state = DELAYED
        record.due = record.run_at = due
        self.delayed_count += 1
        self.delayed.push((due, record.seq, record.id))
        self.delayed_ages.push((record.enqueued, record.seq, record.id))
        self.soonest = min(self.soonest, due)
        self.by_calendar |= record.absolute

    def _enter_line(self, record: Record, due: int, now: int) -> None:
        """Ready at once when ``due`` has come, else delayed."""
        if due <= now:
            record.due = record.run_at = due
            self._enter_ready(record)
        else:
            self._enter_delayed(record, due)

    def _leave(self, record: Record) -> None:
        """Out of its heap, from the middle; the caller says where it goes."""
        state, record.state = record.state, DEAD  # in no heap: a sweep that happens now must see that
        if state is INFLIGHT:
            self.inflight_count -= 1
            self.leases.forget()
        elif state is READY:
            self.ready_count -= 1
            self.waiting.forget()
            self.ages.forget()
        else:
            self.delayed_count -= 1
            self.delayed.forget()
            self.delayed_ages.forget()

    def _bury(self, record: Record, error: str | None, died: int) -> None:
        """Into the dead letters; the id is free again. When they are full, the oldest stay."""
        self._free(record)
        if error is not None:
            record.last_error = error
        record.state = DEAD
        record.due = died
        self.totals["dead_total"] += 1
        if not self.dead.add(record):
            self.totals["dead_dropped"] += 1

    def _finish(self, record: Record, total: str) -> None:
        self._free(record)
        self.totals[total] += 1

    def _free(self, record: Record) -> None:
        """The id is free again."""
        del self.jobs[record.id]
        if not self.jobs:
            self.jobs.clear()  # a dictionary that was large once keeps its table until it is told

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
        if now < self.soonest:
            return
        while (entry := self.delayed.peek()) is not None and entry[0] <= now:
            self.delayed.pop()
            self.delayed_count -= 1
            self._enter_ready(self.jobs[entry[2]])
            self.delayed_ages.forget()
        while (entry := self.leases.peek()) is not None and entry[0] <= now:
            self.leases.pop()
            self.inflight_count -= 1
            self.totals["expired_leases"] += 1
            self._retry(self.jobs[entry[2]], entry[0], now, EXPIRED)
        heads = (self.delayed.peek(), self.leases.peek())
        self.by_calendar &= heads[0] is not None
        self.soonest = min((entry[0] for entry in heads if entry is not None), default=FAR)

    def step(self, change: int) -> None:
        """The calendar stepped by ``change``: what was asked for by calendar moves with it, nothing else."""
        self.skew += change
        moved = [record for record in self.jobs.values() if record.state is DELAYED and record.absolute]
        for record in moved:
            self._leave(record)
            self._enter_delayed(record, record.due - change)

    # The calls.

    def put(self, records: Sequence[Record], policy: Overflow, now: int) -> None:
        """All or none. QueueFull also where the policy is to wait: the caller waits and tries again."""
        self.promote(now)
        over = len(self.jobs) + len(records) - self.settings.capacity
        if over > 0 and not isinstance(policy, (DropOldest, DropNewest)):
            raise self._full(len(records))
        refuse_duplicates(records, self.jobs.__contains__)
        if over > 0 and isinstance(policy, DropNewest):
            kept = len(records) - over
            self.totals["enqueued"] += over
            self.totals["dropped"] += over
            records = records[: max(kept, 0)]
        elif over > 0:
            if over > self.ready_count + self.delayed_count:
                raise self._full(len(records))
            self._drop_oldest(over)
        for record in records:
            self.seq += 1
            record.seq = self.seq
            self.jobs[record.id] = record
            self._enter_line(record, record.due, now)
        self.totals["enqueued"] += len(records)

    def _full(self, wanted: int) -> QueueFull:
        return no_room(self.settings.queue, len(self.jobs), self.settings.capacity, wanted)

    def _drop_oldest(self, count: int) -> None:
        for _ in range(count):
            entry = self.ages.peek() or self.delayed_ages.peek()
            assert entry is not None
            record = self.jobs[entry[2]]
            self._leave(record)
            self._finish(record, "dropped")

    def take(self, limit: int, now: int) -> list[Job]:
        """Lease up to ``limit`` jobs, in order."""
        self.promote(now)
        taken: list[Job] = []
        if self.paused:
            return taken
        until = now + self.lease
        today = now + self.skew
        while len(taken) < limit and (entry := self.waiting.pop()) is not None:
            record = self.jobs[entry[2]]
            record.state = INFLIGHT
            self.ready_count -= 1
            self.ages.forget()
            if record.deadline is not None and today > record.deadline:
                self._miss(record, now)
                continue
            record.attempt += 1
            self.fence += 1
            record.fence = self.fence
            record.due = until
            self.inflight_count += 1
            self.leases.push((until, record.seq, record.id))
            taken.append(snapshot(record, self.settings.queue, self.salt, self.skew))
        if taken:
            self.soonest = min(self.soonest, until)
        return taken

    def _miss(self, record: Record, now: int) -> None:
        self.totals["deadline_missed"] += 1
        if self.settings.deadline_to_dead:
            self._bury(record, TOO_LATE, now)
        else:
            self._finish(record, "dropped")

    def _held(self, job: Job, now: int, too_late: int = 1) -> Record | None:
        """The record, if ``job``'s lease still holds it: the token decides, never the id alone."""
        self.promote(now)
        record = self.jobs.get(job.id)
        if record is not None and record.state is INFLIGHT and record.fence + self.salt == job.token:
            return record
        self.totals["ack_too_late"] += too_late
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
        self._finish(record, "acked")
        return True

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
        self._finish(record, "cancelled" if record.cancelled else "acked")
        return True

    def extend(self, job: Job, duration: int, too_late: int, now: int) -> Job | None:
        if (record := self._held(job, now, too_late)) is None:
            return None
        record.due = now + duration
        self.leases.forget()
        self.leases.push((record.due, record.seq, record.id))
        self.soonest = min(self.soonest, record.due)
        return snapshot(record, self.settings.queue, self.salt, self.skew)

    def cancel(self, id: str, now: int) -> bool:
        self.promote(now)
        record = self.jobs.get(id)
        if record is None:
            return False
        if record.state is INFLIGHT:
            record.cancelled = True
            return False
        self._leave(record)
        self._finish(record, "cancelled")
        return True

    def look_dead(self, limit: int, after: int, now: int) -> list[Job]:
        self.promote(now)
        found: list[Job] = []
        if limit > 0:
            for record in self.dead.since(after + 1):
                found.append(snapshot(record, self.settings.queue, self.salt, self.skew))
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
        room = self.settings.capacity - len(self.jobs)
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
            if record.deadline is not None and now + self.skew > record.deadline:
                record.deadline = None  # it is wanted although it is late
            self.jobs[record.id] = record
            self._enter_line(record, now, now)
        return len(chosen)

    def find(self, id: str, now: int) -> Job | None:
        self.promote(now)
        record = self.jobs.get(id)
        if record is None:
            dead = (self.dead[serial] for serial in reversed(self.dead) if self.dead[serial].id == id)
            record = next(dead, None)
        return None if record is None else snapshot(record, self.settings.queue, self.salt, self.skew)

    def pause(self, paused: bool, now: int) -> None:
        self.promote(now)
        self.paused = paused

    def drop_delayed(self) -> int:
        """The end of a queue that cannot keep what is not due yet."""
        names = [record for record in self.jobs.values() if record.state is DELAYED]
        for record in names:
            self._leave(record)
            self._finish(record, "dropped")
        return len(names)

    def stats(self, now: int) -> Stats:
        self.promote(now)
        oldest = self.ages.peek()
        return Stats(
            ready=self.ready_count,
            delayed=self.delayed_count,
            inflight=self.inflight_count,
            dead=len(self.dead),
            oldest_ready=0.0 if oldest is None else (now - oldest[0]) / 1_000_000,
            capacity=self.settings.capacity,
            paused=self.paused,
            **self.totals,
        )
