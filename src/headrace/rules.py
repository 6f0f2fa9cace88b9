"""Words and small rules that every store shares."""

from __future__ import annotations

from .errors import ConfigError, QueueFull
from .job import Job

EXPIRED = "lease expired: its worker died, hung or lost touch"
TOO_LATE = "deadline passed before it could start"

TOTALS = (
    *("enqueued", "acked", "retried", "expired_leases", "ack_too_late", "cancelled", "taken", "dropped"),
    *("dead_total", "dead_dropped", "deadline_missed"),
)
"""The running totals of a queue, by the names they have in Stats."""


def no_room(queue: str, size: int, capacity: int, wanted: int) -> QueueFull:
    return QueueFull(
        f"queue {queue!r} is full: {size:,} of {capacity:,} places are taken (ready, delayed and in flight) and "
        f"{wanted:,} more were asked for; try later, raise capacity, or choose an overflow policy"
    )


def onward(job: Job) -> Job:
    """What of a leased job goes on to another queue: all that is the caller's, and the first enqueue time. When it
    may start there, and with which deadline if it has none, is for that queue to say."""
    return Job(
        payload=job.payload,
        id=job.id,
        priority=job.priority,
        deadline=job.deadline,
        max_attempts=job.max_attempts,
        enqueued_at=job.enqueued_at,
    )


def to_itself(queue: str) -> ConfigError:
    return ConfigError(f"forward: the job is in queue {queue!r} already; name another one")
