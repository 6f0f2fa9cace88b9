"""Queues that are wrong on purpose: the proof that the conformance suite can fail.

Each is the queue in memory with one rule broken, in the way in which real queues broke it. Whoever changes the suite
sees here whether it still notices: ``BROKEN`` names the rule, and the subject of the suite that must reject it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from ..faces import faces
from ..job import Job
from ..memory._core import Core
from ..memory.store import MemoryStore
from ..overflow import Overflow
from ..ports import LoopPort, T
from ..queue import Queue
from ..record import INFLIGHT, READY, Record
from ..rules import EXPIRED
from ..settings import Settings
from ..waiting import Room, Ticket

Make = Callable[..., Queue]


class Broken(NamedTuple):
    """One broken queue."""

    rule: str
    """What it breaks, in a few words."""
    subject: str
    """The class of the suite that must reject it."""
    make: Make


BROKEN: dict[str, Broken] = {}


def _core(rule: str, subject: str) -> Callable[[type[Core]], type[Core]]:
    """Register a queue with that core."""

    def register(core: type[Core]) -> type[Core]:
        def make(**settings: Any) -> Queue:
            store = MemoryStore(Settings.make(**settings))
            store._core.__class__ = core
            return faces(store, LoopPort())

        BROKEN[core.__name__] = Broken(rule, subject, make)
        return core

    return register


def _room(rule: str, subject: str) -> Callable[[type[Room]], type[Room]]:
    """Register a queue with that waiting room."""

    def register(room: type[Room]) -> type[Room]:
        def make(**settings: Any) -> Queue:
            store = MemoryStore(Settings.make(**settings))
            store.rooms.consumers.__class__ = store.rooms.producers.__class__ = room
            return faces(store, LoopPort())

        BROKEN[room.__name__] = Broken(rule, subject, make)
        return room

    return register


# Leases and fences


@_core("the token decides, never the id alone (F02)", "Settling")
class AckIsNotFenced(Core):
    def _held(self, job: Job, now: int, too_late: int = 1) -> Record | None:
        self.promote(now)
        record = self.jobs.get(job.id)
        return record if record is not None and record.place == INFLIGHT else None


@_core("extend needs the lease too (F02)", "Settling")
class ExtendIgnoresTheFence(Core):
    def extend(self, job: Job, duration: int, too_late: int, now: int) -> Job | None:
        record = self.jobs.get(job.id)
        if record is not None and record.place == INFLIGHT:
            job = replace(job, token=record.fence + self.salt)
        return super().extend(job, duration, too_late, now)


@_core("extend lengthens or shortens", "Settling")
class ExtendOnlyLengthens(Core):
    def extend(self, job: Job, duration: int, too_late: int, now: int) -> Job | None:
        record = self.jobs.get(job.id)
        return super().extend(job, duration if record is None else max(duration, record.due - now), too_late, now)


@_core("a fence rises with every lease of an id, for ever (I7)", "Settling")
class FencesRestartWithEveryJob(Core):
    def take(self, limit: int, now: int) -> list[Job]:
        taken = super().take(limit, now)
        for job in taken:
            self.jobs[job.id].fence = job.attempt
        return [replace(job, fence=job.attempt, token=job.attempt + self.salt) for job in taken]


@_core("a lease of one queue never fits another", "Settling")
class TokensAreTheSameEverywhere(Core):
    def take(self, limit: int, now: int) -> list[Job]:
        self.salt = 0
        return super().take(limit, now)


@_core("a lease starts at the dequeue", "Settling")
class LeaseStartsAtTheEnqueue(Core):
    def take(self, limit: int, now: int) -> list[Job]:
        taken = super().take(limit, now)
        for job in taken:
            self.extend(job, max(1, self.jobs[job.id].enqueued + self.lease - now), 1, now)
        return taken


@_core("a late settle is counted", "States")
class LateAcksAreNotCounted(Core):
    def _held(self, job: Job, now: int, too_late: int = 1) -> Record | None:
        record = super()._held(job, now, too_late)
        self.totals["ack_too_late"] = 0
        return record


# Attempts


@_core("an attempt is counted at the dequeue, so that a crash counts (I3)", "Settling")
class AttemptIsCountedAtTheNack(Core):
    def take(self, limit: int, now: int) -> list[Job]:
        taken = super().take(limit, now)
        for job in taken:
            self.jobs[job.id].attempt -= 1
        return taken

    def nack(self, job: Job, delay: int, error: str | None, now: int) -> bool:
        if job.id in self.jobs:
            self.jobs[job.id].attempt += 1
        return super().nack(job, delay, error, now)


@_core("release gives the attempt back", "Settling")
class ReleaseBurnsTheAttempt(Core):
    def release(self, job: Job, delay: int, now: int) -> bool:
        held = super().release(job, delay, now)
        if held and job.id in self.jobs:
            self.jobs[job.id].attempt += 1
        return held


class StopsAtTheFirstLost(MemoryStore):
    def release(self, jobs: Sequence[Job], delay: int) -> list[Job]:
        for number, job in enumerate(jobs):
            if super().release((job,), delay):
                return list(jobs[number:])
        return []


BROKEN["StopsAtTheFirstLost"] = Broken(
    "release_many releases all but the lost",
    "Settling",
    lambda **settings: faces(StopsAtTheFirstLost(Settings.make(**settings)), LoopPort()),
)


@_core("a replay starts with no attempt", "Dead")
class ReplayKeepsTheAttempts(Core):
    def replay(self, limit: int | None, ids: frozenset[str] | None, now: int) -> int:
        attempts = {record.id: record.attempt for record in self.dead.values()}
        count = super().replay(limit, ids, now)
        for record in self.jobs.values():
            record.attempt = max(record.attempt, attempts.get(record.id, 0))
        return count


@_core("a job that kills its workers is dead at the limit", "Settling")
class ExpiredLeasesAreRetriedForEver(Core):
    def _retry(self, record: Record, due: int, now: int, error: str | None) -> None:
        if error == EXPIRED:
            record.max_attempts = max(record.max_attempts, record.attempt + 1)
        super()._retry(record, due, now, error)


# Time


@_core("every call moves everything that is due (I2c)", "Timing")
class PromotesOneJobACall(Core):
    def promote(self, now: int) -> None:
        for record in self.delayed.all()[:1]:
            if record.due <= now:
                self.delayed.remove(record)
                self._enter_ready(record)
        for record in self.leases.over(now)[:1]:
            self.totals["expired_leases"] += 1
            self._retry(record, now, now, EXPIRED)


@_core("at exactly run_at a job is ready, at exactly lease_until a lease is over", "States")
class BoundariesAreExclusive(Core):
    def promote(self, now: int) -> None:
        super().promote(now - 1)


@_core("a look promotes too (I2c)", "Timing")
class LooksDoNotPromote(Core):
    def find(self, id: str, now: int) -> Job | None:
        return super().find(id, 0)


@_core("nack delays", "Settling")
class NackForgetsTheDelay(Core):
    def nack(self, job: Job, delay: int, error: str | None, now: int) -> bool:
        return super().nack(job, 0, error, now)


@_core("a job may start at exactly its deadline", "Timing")
class DeadlinesAreExclusive(Core):
    def take(self, limit: int, now: int) -> list[Job]:
        self.skew += 1
        try:
            return super().take(limit, now)
        finally:
            self.skew -= 1


class WallClockStore(MemoryStore):
    def _now(self) -> int:
        return self.settings.clock.wall()


BROKEN["WallClockDecides"] = Broken(
    "a wall clock that steps moves no lease (F10)",
    "Timing",
    lambda **settings: faces(WallClockStore(Settings.make(**settings)), LoopPort()),
)


# Order and age


@_core("the first enqueue time survives a retry (I4)", "Order")
class RetriesStartAgeAnew(Core):
    def _retry(self, record: Record, due: int, now: int, error: str | None) -> None:
        record.enqueued = now
        super()._retry(record, due, now, error)


@_core("a retried job keeps its place", "Order")
class RetriesGoToTheTail(Core):
    def _retry(self, record: Record, due: int, now: int, error: str | None) -> None:
        self.seq += 1
        record.seq = self.seq
        super()._retry(record, due, now, error)


@_core("a replayed job goes to the tail", "Order")
class ReplayKeepsThePlace(Core):
    def replay(self, limit: int | None, ids: frozenset[str] | None, now: int) -> int:
        last, self.seq = self.seq, -1_000_000
        try:
            return super().replay(limit, ids, now)
        finally:
            self.seq = last


@_core("the higher priority goes first (F07)", "Order")
class PriorityIsUpsideDown(Core):
    def _enter_ready(self, record: Record) -> None:
        record.priority = -record.priority
        super()._enter_ready(record)
        record.priority = -record.priority


@_core("a batch is at most its limit", "Order")
class BatchesAreOneTooMany(Core):
    def take(self, limit: int, now: int) -> list[Job]:
        return super().take(limit if limit == 1 else limit + 1, now)


# Ids, capacity, conservation


@_core("ack frees the id (I2b)", "Settling")
class AckLeaksTheId(Core):
    def _free(self, record: Record) -> None:
        pass


@_core("ids of unfinished jobs are unique (F08)", "States")
class DuplicatesReplace(Core):
    def put(self, records: Sequence[Record], policy: Overflow, now: int) -> None:
        self.promote(now)
        for record in records:
            if record.id in self.jobs:
                old = self.jobs[record.id]
                self._leave(old)
                self._finish(old, "dropped")
        super().put(records, policy, now)


@_core("a batch goes in whole or not at all (F05)", "Full")
class BatchesAreStoredByHalves(Core):
    def put(self, records: Sequence[Record], policy: Overflow, now: int) -> None:
        for record in records:
            super().put([record], policy, now)


@_core("capacity counts what is in flight (I6)", "Full")
class CapacityForgetsWhatRuns(Core):
    def put(self, records: Sequence[Record], policy: Overflow, now: int) -> None:
        capacity = self.capacity
        self.capacity += self.leases.count
        try:
            super().put(records, policy, now)
        finally:
            self.capacity = capacity


@_core("what a policy drops is counted (C)", "Full")
class DropsAreNotCounted(Core):
    def _finish(self, record: Record, total: str) -> None:
        super()._finish(record, total)
        self.totals["dropped"] = 0


@_core("drop_oldest drops the oldest", "Full")
class DropOldestDropsTheNewest(Core):
    def _drop_oldest(self, count: int) -> None:
        for _ in range(count):
            record = max(
                (record for record in self.jobs.values() if record.place != INFLIGHT),
                key=lambda record: (record.enqueued, record.seq),
            )
            self._leave(record)
            self._finish(record, "dropped")


@_core("a job is in one place (I1)", "Dead")
class ReplayLeavesACopyDead(Core):
    def replay(self, limit: int | None, ids: frozenset[str] | None, now: int) -> int:
        dead = dict(self.dead)
        count = super().replay(limit, ids, now)
        self.dead.update(dead)
        return count


@_core("a replay heeds the capacity (I6)", "Dead")
class ReplayOverfills(Core):
    def replay(self, limit: int | None, ids: frozenset[str] | None, now: int) -> int:
        capacity = self.capacity
        self.capacity *= 10
        try:
            return super().replay(limit, ids, now)
        finally:
            self.capacity = capacity


# Dead letters, pause, cancel, close


@_core("when the dead letters are full, the oldest stay", "Dead")
class TheDeadKeepTheNewest(Core):
    def _bury(self, record: Record, error: str | None, died: int) -> None:
        if self.dead and len(self.dead) >= self.dead.capacity:
            del self.dead[min(self.dead)]
            self.totals["dead_dropped"] += 1
        super()._bury(record, error, died)


@_core("the error is kept", "States")
class ErrorsAreForgotten(Core):
    def nack(self, job: Job, delay: int, error: str | None, now: int) -> bool:
        return super().nack(job, delay, None, now)


@_core("a paused queue hands out nothing", "Lifecycle")
class PauseIsForgotten(Core):
    def take(self, limit: int, now: int) -> list[Job]:
        self.paused = False
        return super().take(limit, now)


@_core("a running job that was asked to cancel is told, and is not retried (F09)", "Lifecycle")
class CancelOfARunningJobIsForgotten(Core):
    def cancel(self, id: str, now: int) -> bool:
        record = self.jobs.get(id)
        return super().cancel(id, now) if record is None or record.place != INFLIGHT else False


@_core("cancelled means that it never starts (F09)", "Lifecycle")
class CancelClaimsWhatRuns(Core):
    def cancel(self, id: str, now: int) -> bool:
        return super().cancel(id, now) or id in self.jobs


@_core("a closed queue hands out what is due", "Lifecycle")
class CloseLosesWhatIsReady(Core):
    def drop_delayed(self) -> int:
        for record in [record for record in self.jobs.values() if record.place == READY]:
            self._leave(record)
            self._finish(record, "dropped")
        return super().drop_delayed()


# Waiting


@_room("whoever makes a job ready wakes a waiter", "Waiting")
class WakeUpsAreLost(Room):
    def notify(self) -> None:
        pass


@_room("one woken waiter wakes the next while there is more", "Waiting")
class TheChainBreaks(Room):
    def leave(self, ticket: Ticket, more: bool) -> None:
        ticket.signalled = False
        super().leave(ticket, False)


@_room("a shortened wait wakes whoever watches the clock", "Waiting")
class TheWatchSleepsOn(Room):
    def rearm(self, due: int) -> None:
        pass


@_room("waiters are served first come first served", "Waiting")
class LastComeFirstServed(Room):
    def _wake_head(self) -> None:
        if self.tickets:
            self.tickets.move_to_end(next(reversed(self.tickets)), last=False)
        super()._wake_head()


@_room("the end wakes every waiter", "Lifecycle")
class CloseWakesNobody(Room):
    def wake_all(self) -> None:
        pass


class SwallowingPort(LoopPort):
    async def take(self, step: Callable[[int], list[T]], limit: int, undo: Callable[[list[T]], object]) -> list[T]:
        taken = step(limit)
        await asyncio.sleep(0)
        return taken


BROKEN["ACancelledWaiterSwallowsAJob"] = Broken(
    "a cancelled waiter takes no job (F12)",
    "Cancelling",
    lambda **settings: faces(MemoryStore(Settings.make(**settings)), SwallowingPort()),
)
