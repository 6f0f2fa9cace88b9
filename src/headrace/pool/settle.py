"""How an attempt ended -> what to do with the job. All of the table in one place, and pure."""

from __future__ import annotations

import random
from typing import TypeAlias

import msgspec

from .. import check
from ..clock import SECOND, to_micros
from ..errors import ConfigError
from ..job import Cancel, Discard, Job, Retry, Snooze
from ..queue import AsyncQueue, Queue, Settled
from ..text import describe
from .outcome import (
    CancelAsked,
    Ended,
    Forward,
    Interrupted,
    LeaseGone,
    ProcessDied,
    Raised,
    Returned,
    Stop,
    TimedOut,
    Unserved,
)
from .retry import Retries, Uniform

UNSERVED_GRACE = 600.0
"""For how many seconds from its first enqueue a job may wait for a worker that knows its task."""


ROLLED_BACK = "the handler settled the job in a transaction, which was rolled back"


class Ack(msgspec.Struct, frozen=True):
    """Done."""


class Nack(msgspec.Struct, frozen=True):
    """A failed attempt."""

    delay: float
    error: str


class Release(msgspec.Struct, frozen=True):
    """Give the job and its attempt back."""

    delay: float = 0.0


class Bury(msgspec.Struct, frozen=True):
    """Dead at once."""

    error: str


class Onward(msgspec.Struct, frozen=True):
    """Done here, and on to another queue; where that refuses it, a failed attempt."""

    to: Queue | AsyncQueue
    delay: float


class CancelJob(msgspec.Struct, frozen=True):
    """Done as cancelled."""

    reason: str


class ByHand(msgspec.Struct, frozen=True):
    """Settled by its handler, in a transaction of its own; ``otherwise`` where that was rolled back."""

    how: Settled
    otherwise: Action


class Nothing(msgspec.Struct, frozen=True):
    """The lease is lost: the job is somebody else's."""


Action: TypeAlias = "Ack | Nack | Release | Bury | Onward | CancelJob | ByHand | Nothing"

ACK = Ack()
NOTHING = Nothing()


def decide(
    job: Job,
    how: Ended,
    retry: Retries,
    now: int,
    uniform: Uniform = random.random,
    unserved_grace: float = UNSERVED_GRACE,
) -> Action:
    """The one place where an ending becomes an action. ``now``: the wall clock, in microseconds."""
    match how:
        case Returned():
            return ACK
        case LeaseGone():
            return NOTHING
        case Interrupted():
            return Release()
        case CancelAsked():
            return CancelJob(Stop.ASKED.text)
        case TimedOut(after):
            error = f"timed out after {after:g} s"
        case ProcessDied(died):
            error = died
        case Raised(Discard() as discard):
            return Bury(_text(discard.reason))
        case Raised(Forward() as forward):
            return Onward(forward.to, retry.delay(job.attempt, uniform))
        case Raised(Cancel() as cancel):
            return CancelJob(_text(cancel.reason))
        case Raised(Snooze() as snooze):
            if _valid(snooze.delay):
                return Release(snooze.delay)
            error = "Snooze: the delay is not a number of seconds from 0 to 100 years"
        case Raised(Retry() as again):
            reasons = (again.error, again.__cause__, "the handler asked for a retry")
            error = _text(next(reason for reason in reasons if reason is not None))
            if again.delay is not None and _valid(again.delay):
                return Nack(again.delay, error)
        case Raised(Unserved() as unserved):
            age = _age(job, now)
            if age < unserved_grace:
                return Release(_unserved_delay(age))
            error = _text(unserved)
        case _:
            error = _text(how.error)
    return Nack(retry.delay(job.attempt, uniform), error)


def settled_by_hand(job: Job, how: Settled, action: Action, retry: Retries, uniform: Uniform = random.random) -> Action:
    """What to do instead of ``action``. The lease tells whether that transaction was committed; a handler that
    returned, though it was not, has failed."""
    if isinstance(action, Nothing):
        return action
    if isinstance(action, Ack):
        action = Nack(retry.delay(job.attempt, uniform), ROLLED_BACK)
    return ByHand(how, action)


def _text(error: BaseException | str) -> str:
    return describe(error) or type(error).__name__


def _valid(delay: object) -> bool:
    try:
        check.duration("delay", delay)
    except ConfigError:
        return False
    return True


def _age(job: Job, now: int) -> float:
    """Seconds since the first enqueue; a wall clock that stepped back makes a job new, not negative."""
    return max(0.0, (now - to_micros(job.enqueued_at)) / SECOND) if job.enqueued_at else 0.0


def _unserved_delay(age: float) -> float:
    """From 1 s to 30 s, a tenth of the job's age: a rolling deploy soon ends, a forgotten task never does."""
    return min(30.0, max(1.0, age / 10))
