"""Words and small rules that every store shares."""

from __future__ import annotations

from .errors import QueueFull

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
