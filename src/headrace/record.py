"""What a store keeps of a job: the mutable twin of Job, with times in queue time."""

from __future__ import annotations

from .clock import to_datetime
from .job import Job, State


class Record:
    """One unfinished or dead job inside a store. ``due``: ready from then (delayed), leased until (inflight)."""

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
    """The frozen Job that callers see. ``salt`` makes the token: a lease of another store never fits here."""
    state = record.state
    enqueued = to_datetime(record.enqueued + skew)
    return Job(
        record.payload,
        record.id,
        record.priority,
        0.0,
        enqueued if record.run_at == record.enqueued else to_datetime(record.run_at + skew),
        None if record.deadline is None else to_datetime(record.deadline),
        record.max_attempts,
        queue,
        state,
        record.attempt,
        record.fence,
        record.fence + salt,
        enqueued,
        to_datetime(record.due + skew) if state is State.INFLIGHT else None,
        record.last_error,
        record.cancelled,
        record.ref,
    )
