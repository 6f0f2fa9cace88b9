"""The reference model: a queue as one list, searched from end to end. Slow, and obviously right.

It knows nothing of heaps, locks, waiting or storage. Times are whole microseconds: ``now`` on a line that never
steps, and ``now + skew`` by the calendar. Leases are numbered by who hands them in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..clock import to_datetime, to_micros
from ..errors import DuplicateJob, LeaseLost, QueueClosed, QueueFull
from ..job import Job, State

EXPIRED = "lease expired"


@dataclass
class Entry:
    """One job."""

    job: Job
    seq: int
    max_attempts: int
    enqueued: int
    due: int
    """Ready from then on (delayed), leased until then (inflight), dead since then (dead)."""
    run_at: int
    by_calendar: bool
    state: State = State.READY
    attempt: int = 0
    lease: int = 0
    error: str | None = None
    cancelled: bool = False
    late_is_fine: bool = False

    def late(self, wall: int) -> bool:
        return self.job.deadline is not None and not self.late_is_fine and to_micros(self.job.deadline) < wall


class Model:
    """The rules of the contract. Methods raise what a queue raises."""

    def __init__(
        self,
        now: int,
        *,
        capacity: int,
        max_attempts: int,
        lease: int,
        overflow: str,
        dead_capacity: int,
        deadline_to_dead: bool,
        durable: bool,
    ) -> None:
        self.now = now
        self.skew = 0
        self.capacity = capacity
        self.max_attempts = max_attempts
        self.lease = lease
        self.overflow = overflow
        self.dead_capacity = dead_capacity
        self.deadline_to_dead = deadline_to_dead
        self.durable = durable
        self.jobs: list[Entry] = []
        self.dead: list[Entry] = []
        self.totals: Counter[str] = Counter()
        self.seq = self.leases = 0
        self.paused = self.closed = False

    # Looking

    def of(self, *states: State) -> list[Entry]:
        return [entry for entry in self.jobs if entry.state in states]

    def moments(self) -> list[int]:
        """When something falls due."""
        return sorted({entry.due for entry in self.of(State.DELAYED, State.INFLIGHT)})

    def stats(self) -> dict[str, object]:
        self.move_due()
        ages = [self.now - entry.enqueued for entry in self.of(State.READY)]
        counts = {state.value: len(self.of(state)) for state in (State.READY, State.DELAYED, State.INFLIGHT)}
        oldest = max(ages, default=0) / 1_000_000
        return {**self.totals, **counts, "dead": len(self.dead), "oldest_ready": oldest, "paused": self.paused}

    def find(self, id: str) -> Entry | None:
        self.move_due()
        return next((entry for entry in [*self.jobs, *reversed(self.dead)] if entry.job.id == id), None)

    def shown(self, entry: Entry) -> Job:
        """What callers see of it, but for what only the store can know (fence, token, ref)."""
        until = entry.due if entry.state is State.INFLIGHT else None
        return Job(
            payload=entry.job.payload,
            id=entry.job.id,
            priority=entry.job.priority,
            run_at=to_datetime(entry.run_at + self.skew),
            deadline=None if entry.late_is_fine else entry.job.deadline,
            max_attempts=entry.max_attempts,
            state=entry.state,
            attempt=entry.attempt,
            enqueued_at=to_datetime(entry.enqueued + self.skew),
            lease_until=None if until is None else to_datetime(until + self.skew),
            died_at=to_datetime(entry.due + self.skew) if entry.state is State.DEAD else None,
            last_error=entry.error,
            cancelled=entry.cancelled,
        )

    # Time

    def step(self, change: int) -> None:
        self.skew += change
        for entry in self.of(State.DELAYED):
            if entry.by_calendar:
                entry.due -= change
                entry.run_at -= change

    def move_due(self) -> None:
        for entry in self.of(State.DELAYED):
            if entry.due <= self.now:
                entry.state = State.READY
        for entry in sorted(self.of(State.INFLIGHT), key=lambda entry: (entry.due, entry.seq)):
            if entry.due <= self.now:
                self.totals["expired_leases"] += 1
                self.again(entry, entry.due, EXPIRED)

    # In

    def enqueue(self, jobs: Sequence[Job]) -> int:
        if self.closed:
            raise QueueClosed
        self.move_due()
        over = len(self.jobs) + len(jobs) - self.capacity
        if over > 0 and self.overflow == "reject":
            raise QueueFull
        names = [entry.job.id for entry in self.jobs] + [job.id for job in jobs]
        for name in names:
            if names.count(name) > 1:
                raise DuplicateJob(name)
        if over > 0 and self.overflow == "drop_oldest":
            waiting = sorted(
                self.of(State.READY, State.DELAYED),
                key=lambda entry: (entry.state is State.DELAYED, entry.enqueued, entry.seq),
            )
            if over > len(waiting):
                raise QueueFull
            for entry in waiting[:over]:
                self.gone(entry, "dropped")
        for job in jobs:
            self.totals["enqueued"] += 1
            if len(self.jobs) >= self.capacity:
                self.totals["dropped"] += 1
            else:
                self.jobs.append(self.fresh(job))
        return len(jobs)

    def fresh(self, job: Job) -> Entry:
        due = self.now + round(job.delay * 1_000_000)
        if job.run_at is not None:
            due = max(self.now, to_micros(job.run_at) - self.skew)
        self.seq += 1
        attempts = job.max_attempts or self.max_attempts
        state = State.DELAYED if due > self.now else State.READY
        return Entry(job, self.seq, attempts, self.now, due, due, job.run_at is not None, state)

    # Out

    def dequeue(self, limit: int) -> list[Entry]:
        self.move_due()
        taken: list[Entry] = []
        while not self.paused and len(taken) < limit and (ready := self.of(State.READY)):
            entry = min(ready, key=lambda entry: (-entry.job.priority, entry.seq))
            if entry.late(self.now + self.skew):
                self.totals["deadline_missed"] += 1
                if self.deadline_to_dead:
                    self.bury(entry, "deadline")
                else:
                    self.gone(entry, "dropped")
                continue
            entry.attempt += 1
            self.leases += 1
            entry.state, entry.lease, entry.due = State.INFLIGHT, self.leases, self.now + self.lease
            taken.append(entry)
        if not taken and self.closed:
            raise QueueClosed
        return taken

    # Settling

    def held(self, lease: int) -> Entry:
        self.move_due()
        for entry in self.of(State.INFLIGHT):
            if entry.lease == lease:
                return entry
        self.totals["ack_too_late"] += 1
        raise LeaseLost(())

    def settle(self, how: str, lease: int, delay: int, error: str | None) -> None:
        entry = self.held(lease)
        if how == "ack":
            self.gone(entry, "acked")
        elif how == "cancel" or (how == "release" and entry.cancelled):
            self.gone(entry, "cancelled")
        elif how == "bury":
            self.bury(entry, error)
        elif how == "release":
            entry.attempt -= 1
            self.wait(entry, self.now + delay)
        else:
            if entry.attempt < entry.max_attempts and not entry.cancelled:
                self.totals["retried"] += 1
            self.again(entry, self.now + delay, error)

    def release_many(self, leases: Iterable[int], delay: int) -> list[int]:
        """Those that were lost."""
        lost = []
        for lease in leases:
            try:
                self.settle("release", lease, delay, None)
            except LeaseLost:
                lost.append(lease)
        return lost

    def extend(self, lease: int, duration: int) -> Entry:
        entry = self.held(lease)
        entry.due = self.now + duration
        return entry

    def again(self, entry: Entry, due: int, error: str | None) -> None:
        """After a failed attempt."""
        entry.error = entry.error if error is None else error
        if entry.cancelled:
            self.gone(entry, "cancelled")
        elif entry.attempt >= entry.max_attempts:
            self.bury(entry, None, min(due, self.now))
        else:
            self.wait(entry, due)

    def wait(self, entry: Entry, due: int) -> None:
        entry.state = State.DELAYED if due > self.now else State.READY
        entry.due = entry.run_at = due
        entry.by_calendar = False

    def gone(self, entry: Entry, total: str) -> None:
        self.jobs.remove(entry)
        self.totals[total] += 1

    def bury(self, entry: Entry, error: str | None, died: int | None = None) -> None:
        self.jobs.remove(entry)
        entry.due = self.now if died is None else died
        entry.error = entry.error if error is None else error
        entry.state = State.DEAD
        self.totals["dead_total"] += 1
        if len(self.dead) < self.dead_capacity:
            self.dead.append(entry)
        else:
            self.totals["dead_dropped"] += 1

    # The rest

    def cancel(self, id: str) -> bool:
        self.move_due()
        for entry in list(self.jobs):
            if entry.job.id == id and entry.state is State.INFLIGHT:
                entry.cancelled = True
            elif entry.job.id == id:
                self.gone(entry, "cancelled")
                return True
        return False

    def look_dead(self, limit: int) -> list[Entry]:
        self.move_due()
        return self.dead[: max(limit, 0)]

    def take_dead(self, limit: int) -> list[Entry]:
        taken = self.look_dead(limit)
        self.dead = self.dead[len(taken) :]
        self.totals["taken"] += len(taken)
        return taken

    def replay(self, limit: int | None, ids: Iterable[str] | None) -> int:
        if self.closed:
            raise QueueClosed
        self.move_due()
        count = 0
        for entry in list(self.dead):
            wanted = ids is None or entry.job.id in ids
            free = entry.job.id not in {other.job.id for other in self.jobs}
            room = len(self.jobs) < self.capacity and (limit is None or count < limit)
            if wanted and free and room:
                self.dead.remove(entry)
                self.jobs.append(entry)
                self.seq += 1
                entry.seq, entry.attempt, entry.cancelled = self.seq, 0, False
                entry.late_is_fine = entry.late_is_fine or entry.late(self.now + self.skew)
                self.wait(entry, self.now)
                count += 1
        return count

    def pause(self) -> None:
        self.move_due()
        self.paused = True

    def resume(self) -> None:
        self.move_due()
        self.paused = False

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.move_due()
            for entry in self.of(State.DELAYED):
                if not self.durable:
                    self.gone(entry, "dropped")
