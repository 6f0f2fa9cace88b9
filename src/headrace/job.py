"""The vocabulary: a job, its states, the figures of a queue, and what a handler may raise.

All values here are frozen: a job that was dequeued is a snapshot that nobody writes to again, so a worker
that lost its lease never races with the one that holds it now.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from .chosen import module
from .clock import to_datetime


class State(StrEnum):
    """Where an unfinished or buried job is. Done jobs are gone."""

    DELAYED = "delayed"
    READY = "ready"
    INFLIGHT = "inflight"
    DEAD = "dead"


class Job(msgspec.Struct, frozen=True, gc=False):
    """One unit of work. The upper fields are the caller's, the lower ones the queue's.

    A caller gives ``payload`` and, where wanted, the rest of the upper half; what the queue hands back has
    every field set. Times are aware datetimes in UTC, exact to the microsecond; durations are in seconds.
    """

    payload: bytes = b""
    """What the handler gets; never interpreted by the queue."""
    id: str = msgspec.field(default_factory=module("ids").new_id)
    """The idempotency key: unique among the unfinished jobs of a queue. Made, time-ordered, where not given."""
    priority: int = 0
    """The higher number goes first: -2**31 to 2**31 - 1."""
    delay: float = 0.0
    """Seconds from now before which the job is not handed out. Give this or ``run_at``."""
    run_at: datetime | None = None
    """The moment before which the job is not handed out; a past one means now."""
    deadline: datetime | None = None
    """The latest moment at which the job may start."""
    max_attempts: int | None = None
    """How often it may be leased, the first time included; ``None``: the queue's setting."""

    queue: str = ""
    """The name of the queue it was taken from."""
    state: State | None = None
    """Where it was when this snapshot was made; ``None`` before it was ever queued."""
    attempt: int = 0
    """How often it has been leased, this lease included."""
    fence: int = 0
    """Rises with every lease, across restarts too: let a guarded write say ``where fence < :fence``."""
    token: int = 0
    """The lease's proof, compared for equality only; settling needs it."""
    enqueued_at: datetime | None = None
    """When it was first enqueued; retries and replays do not change it."""
    lease_until: datetime | None = None
    """When this lease ends unless it is extended."""
    died_at: datetime | None = None
    """When it became a dead letter."""
    last_error: str | None = None
    """Why the latest attempt failed, or why it is dead."""
    cancelled: bool = False
    """Somebody asked for it to be cancelled while it ran (``extend`` tells)."""
    ref: int = 0
    """The store's own handle for the row or record; opaque."""

    def __eq__(self, other: object) -> bool:
        return type(other) is Job and _shown(self) == _shown(other)

    def __hash__(self) -> int:
        return hash(_shown(self))

    def __repr__(self) -> str:
        shown = zip(self.__struct_fields__, _shown(self), strict=True)
        return f"Job({', '.join(f'{name}={value!r}' for name, value in shown)})"


def _shown(job: Job) -> tuple[object, ...]:
    return tuple([getattr(job, name) for name in job.__struct_fields__])


class _Moment:
    """A field in which a store leaves whole microseconds since 1970: a datetime is made of them for whoever looks, and
    most never do. A job without a ``state`` comes from no store, and shows what its maker gave."""

    def __init__(self, field: Any) -> None:
        self._get = field.__get__

    def __get__(self, job: Job | None, kind: type[Job]) -> Any:
        if job is None:
            return self
        kept = self._get(job)
        return to_datetime(int(kept)) if type(kept) in (float, int) and job.state is not None else kept


for _name in ("run_at", "deadline", "enqueued_at", "lease_until", "died_at"):
    setattr(Job, _name, _Moment(vars(Job)[_name]))


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a queue at one moment: what is where, and the running totals since it was made."""

    ready: int = 0
    delayed: int = 0
    inflight: int = 0
    dead: int = 0
    oldest_ready: float = 0.0
    """Seconds since the first enqueue of the ready job that has waited longest; 0.0 when none is ready."""
    capacity: int = 0
    paused: bool = False

    enqueued: int = 0
    acked: int = 0
    retried: int = 0
    expired_leases: int = 0
    ack_too_late: int = 0
    cancelled: int = 0
    taken: int = 0
    """Dead letters that ``take_dead`` gave away."""
    dropped: int = 0
    """Jobs that a policy threw away: overflow, a deadline that drops, dead letters that were kept for long enough, a
    memory queue that closed."""
    dead_total: int = 0
    dead_dropped: int = 0
    """Dead letters for which there was no room."""
    deadline_missed: int = 0
    leaked: dict[str, int] = msgspec.field(default_factory=lambda: {"rear": 0, "front": 0})

    @property
    def size(self) -> int:
        """What counts against the capacity."""
        return self.ready + self.delayed + self.inflight

    @property
    def unaccounted(self) -> int:
        """The conservation law as a figure: anything but 0 means that a job vanished or doubled."""
        gone = self.acked + self.cancelled + self.taken + self.dropped + self.dead_dropped
        return self.enqueued - (gone + sum(self.leaked.values()) + self.dead + self.size)


class Outcome(Exception):
    """What a handler may raise to say how its job ends, other than well or badly."""


class Retry(Outcome):
    """Try again after ``delay`` seconds (``None``: as the retry policy says). Costs an attempt."""

    def __init__(self, delay: float | None = None, error: BaseException | str | None = None) -> None:
        super().__init__(delay, error)
        self.delay = delay
        self.error = error


class Snooze(Outcome):
    """Not now: give the job back for ``delay`` seconds. Costs no attempt."""

    def __init__(self, delay: float) -> None:
        super().__init__(delay)
        self.delay = delay


class Discard(Outcome):
    """This job can never succeed: bury it at once, whatever attempts are left."""

    def __init__(self, reason: str = "discarded by the handler") -> None:
        super().__init__(reason)
        self.reason = reason


class Cancel(Outcome):
    """The work is no longer wanted: done, counted as cancelled."""

    def __init__(self, reason: str = "cancelled by the handler") -> None:
        super().__init__(reason)
        self.reason = reason
