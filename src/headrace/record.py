"""What a store keeps of a job: the mutable twin of Job, with times in queue time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .clock import to_datetime
from .errors import DuplicateJob
from .job import Job, State


class Record:
    """One unfinished or dead job inside a store. ``due``: ready from then (delayed), leased until then
    (inflight), dead since then (dead)."""

    __slots__ = (
        "absolute",
        "attempt",
        "cancelled",
        "deadline",
        "due",
        "enqueued",
        "fence",
        "id",
        "last_error",
        "max_attempts",
        "payload",
        "priority",
        "ref",
        "run_at",
        "seq",
        "state",
    )

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
        self.id = id
        self.payload = payload
        self.priority = priority
        self.max_attempts = max_attempts
        self.enqueued = enqueued
        """First enqueue, queue time."""
        self.due = self.run_at = due
        self.absolute = absolute
        """``due`` was asked for by calendar, so it moves when the calendar steps."""
        self.deadline = deadline
        """By calendar, microseconds since 1970."""
        self.seq = 0
        self.state = State.READY
        self.attempt = 0
        self.fence = 0
        self.last_error: str | None = None
        self.cancelled = False
        self.ref = 0


def snapshot(record: Record, queue: str, salt: int, skew: int) -> Job:
    """The frozen Job that callers see."""
    return job_of(
        record.id,
        record.payload,
        record.priority,
        record.max_attempts,
        record.enqueued,
        record.run_at,
        record.deadline,
        record.attempt,
        record.fence,
        record.due,
        record.last_error,
        record.cancelled,
        record.ref,
        state=record.state,
        queue=queue,
        salt=salt,
        skew=skew,
    )


def job_of(
    id: str,
    payload: bytes,
    priority: int,
    max_attempts: int,
    enqueued: int,
    run_at: int,
    deadline: int | None,
    attempt: int,
    fence: int,
    due: int,
    last_error: str | None,
    cancelled: int,
    ref: int,
    *,
    state: State,
    queue: str,
    salt: int,
    skew: int,
) -> Job:
    """A Job from what stores keep, in the order in which they keep it; moments are in queue time.

    The token is the fence plus the store's secret ``salt``: a lease of another store never fits.
    """
    shown = to_datetime(enqueued + skew)
    return Job(
        payload,
        id,
        priority,
        0.0,
        shown if run_at == enqueued else to_datetime(run_at + skew),
        None if deadline is None else to_datetime(deadline),
        max_attempts,
        queue,
        state,
        attempt,
        fence,
        fence + salt,
        shown,
        to_datetime(due + skew) if state is State.INFLIGHT else None,
        to_datetime(due + skew) if state is State.DEAD else None,
        last_error,
        bool(cancelled),
        ref,
    )


def refuse_duplicates(records: Sequence[Record], taken: Callable[[str], object]) -> None:
    """DuplicateJob for the first record whose id is ``taken``, or given twice."""
    seen: set[str] = set()
    for record in records:
        if record.id in seen or taken(record.id):
            raise DuplicateJob(record.id)
        seen.add(record.id)
