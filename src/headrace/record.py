"""What a store keeps of a job: the mutable twin of Job, with times in queue time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .clock import FAR
from .errors import DuplicateJob
from .job import Job, State
from .layout import lay, moment

STATES = (State.DELAYED, State.READY, State.INFLIGHT, State.DEAD)
DELAYED, READY, INFLIGHT, DEAD = range(4)
ZERO = 0.0


class Record:
    """One unfinished or dead job inside a store. ``due``: ready from then (delayed), leased until then
    (inflight), dead since then (dead)."""

    __slots__ = (
        "absolute",
        "attempt",
        "cancelled",
        "due",
        "enqueued",
        "fence",
        "id",
        "last_error",
        "latest",
        "max_attempts",
        "payload",
        "place",
        "priority",
        "ref",
        "run_at",
        "seq",
        "slot",
    )

    id: str
    payload: bytes
    priority: int
    max_attempts: int
    enqueued: int
    """First enqueue, queue time."""
    due: int
    run_at: int
    absolute: bool
    """``due`` was asked for by calendar, so it moves when the calendar steps."""
    latest: int
    """The deadline by calendar, microseconds since 1970; FAR: none."""
    seq: int
    slot: int
    """Where it stands in a line, which alone knows what that means."""
    place: int
    """DELAYED, READY, INFLIGHT or DEAD."""
    attempt: int
    fence: int
    """Of its latest lease; 0: there was none."""
    last_error: str | None
    cancelled: bool
    ref: int

    def __init__(
        self,
        id: str,
        payload: bytes,
        priority: int,
        max_attempts: int,
        enqueued: int,
        due: int,
        absolute: bool = False,
        deadline: int | None = None,
    ) -> None:
        _fill(self, id, payload, priority, max_attempts, enqueued, due, absolute, FAR if deadline is None else deadline)

    @property
    def state(self) -> State:
        return STATES[self.place]

    @property
    def deadline(self) -> int | None:
        return None if self.latest == FAR else self.latest


def fresh(
    id: str,
    payload: bytes,
    priority: int,
    max_attempts: int,
    enqueued: int,
    due: int,
    absolute: bool,
    latest: int,
) -> Record:
    """A new record, by the way that is the shortest when it is compiled."""
    record = Record.__new__(Record)
    _fill(record, id, payload, priority, max_attempts, enqueued, due, absolute, latest)
    return record


def _fill(
    record: Record,
    id: str,
    payload: bytes,
    priority: int,
    max_attempts: int,
    enqueued: int,
    due: int,
    absolute: bool,
    latest: int,
) -> None:
    record.id = id
    record.payload = payload
    record.priority = priority
    record.max_attempts = max_attempts
    record.enqueued = enqueued
    record.due = record.run_at = due
    record.absolute = absolute
    record.latest = latest
    record.seq = record.fence = record.ref = record.attempt = 0
    record.slot = -1
    record.place = READY
    record.last_error = None
    record.cancelled = False


def snapshot(record: Record, queue: str, salt: int, skew: int) -> Job:
    """The frozen Job that callers see."""
    shown = moment(record.enqueued + skew)
    return lay(
        record.payload,
        record.id,
        record.priority,
        ZERO,
        shown if record.run_at == record.enqueued else moment(record.run_at + skew),
        None if record.latest == FAR else record.latest,
        record.max_attempts,
        queue,
        STATES[record.place],
        record.attempt,
        record.fence,
        record.fence + salt if record.fence else 0,
        shown,
        moment(record.due + skew) if record.place == INFLIGHT else None,
        moment(record.due + skew) if record.place == DEAD else None,
        record.last_error,
        record.cancelled,
        record.ref,
    )


def jobs_of(rows: Iterable[Iterable[Any]], state: State, queue: str, salt: int, skew: int) -> list[Job]:
    """Jobs from what stores keep, in the order in which they keep it: id, payload, priority, max_attempts, enqueued,
    run_at, deadline, attempt, fence, due, last_error, cancelled, ref. Moments are in queue time, but for the deadline.

    The token is the fence plus the store's secret ``salt``: a lease of another store never fits.
    """
    inflight, dead = state is STATES[INFLIGHT], state is STATES[DEAD]
    jobs = []
    for row in rows:
        id, payload, priority, attempts, enqueued, run_at, deadline, attempt, fence, due, error, cancelled, ref = row
        shown = moment(enqueued + skew)
        jobs.append(
            lay(
                payload,
                id,
                priority,
                ZERO,
                shown if run_at == enqueued else moment(run_at + skew),
                deadline,
                attempts,
                queue,
                state,
                attempt,
                fence,
                fence + salt,
                shown,
                moment(due + skew) if inflight else None,
                moment(due + skew) if dead else None,
                error,
                bool(cancelled),
                ref,
            )
        )
    return jobs


def columns_of(records: Sequence[Record]) -> tuple[list[Any], ...]:
    """What fresh records hold, a list each: id, payload, priority, max_attempts, absolute, due, latest, enqueued."""
    ids: list[str] = []
    payloads: list[bytes] = []
    priorities: list[int] = []
    attempts: list[int] = []
    absolutes: list[bool] = []
    dues: list[int] = []
    latests: list[int] = []
    enqueueds: list[int] = []
    for record in records:
        ids.append(record.id)
        payloads.append(record.payload)
        priorities.append(record.priority)
        attempts.append(record.max_attempts)
        absolutes.append(bool(record.absolute))
        dues.append(record.due)
        latests.append(record.latest)
        enqueueds.append(record.enqueued)
    return ids, payloads, priorities, attempts, absolutes, dues, latests, enqueueds


def refuse_duplicates(records: Sequence[Record], taken: Callable[[str], object]) -> None:
    """DuplicateJob for the first record whose id is ``taken``, or given twice."""
    seen: set[str] = set()
    for record in records:
        if record.id in seen or taken(record.id):
            raise DuplicateJob(record.id)
        seen.add(record.id)
