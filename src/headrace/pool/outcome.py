"""How one attempt ended, as values: what the runners report and ``settle`` decides upon."""

from __future__ import annotations

import asyncio
from enum import IntEnum
from typing import TypeAlias

import msgspec

from ..job import Outcome
from ..queue import AsyncQueue, Queue


class Stop(IntEnum):
    """Why a running handler was told to stop. A graver reason replaces a lesser one, never the reverse."""

    ASKED = 1
    """Somebody cancelled the job: the handler is told, and may still finish."""
    DRAIN = 2
    """The pool is shutting down and the time to drain is over."""
    TIMEOUT = 3
    """The attempt has run for as long as it may."""
    LEASE = 4
    """The lease is lost: whatever comes of the work no longer counts."""

    @property
    def text(self) -> str:
        return _TEXTS[self]


_TEXTS = {
    Stop.ASKED: "cancel requested",
    Stop.DRAIN: "the worker is shutting down",
    Stop.TIMEOUT: "timed out",
    Stop.LEASE: "lease lost",
}


class Unserved(Exception):
    """Raised by ``resolve``: this worker does not know the task, another one may. Not the job's fault."""


class Forward(Outcome):
    """Raised by a handler: the job is done here and goes on to another queue, with its payload, its id, its priority
    and its deadline. In one step where both queues are in one store. Not from a process: the queue stays behind."""

    def __init__(self, to: Queue | AsyncQueue) -> None:
        super().__init__(to)
        if not isinstance(to, (Queue, AsyncQueue)):
            raise TypeError(f"a job goes on to a queue, not to {type(to).__name__}: headrace.connect(url, queue=…)")
        self.to = to


class Returned(msgspec.Struct, frozen=True):
    """It returned. What it returned is not kept."""


class Raised(msgspec.Struct, frozen=True):
    """It raised; from another process comes the text alone."""

    error: BaseException | str


class TimedOut(msgspec.Struct, frozen=True):
    """It ran past its timeout, in seconds."""

    after: float


class LeaseGone(msgspec.Struct, frozen=True):
    """Its lease was lost while it ran."""


class Interrupted(msgspec.Struct, frozen=True):
    """The shutdown could not wait for it any longer."""


class CancelAsked(msgspec.Struct, frozen=True):
    """Somebody asked for the job to be cancelled, and the handler stopped for that."""


class ProcessDied(msgspec.Struct, frozen=True):
    """The process that ran it ended without an answer."""

    how: str


Answer: TypeAlias = Returned | Raised | ProcessDied
"""What the handler itself did."""
Ended: TypeAlias = Answer | TimedOut | LeaseGone | Interrupted | CancelAsked
"""The same, seen together with what the pool had told it."""

RETURNED = Returned()
NEVER = Raised("the handler did not stop when told to")


def ended(stop: Stop | None, answer: Answer, timeout: float) -> Ended:
    """What an answer means when the handler had been told to stop (or had not)."""
    if stop is None:
        return answer
    match stop:
        case Stop.LEASE:
            return LeaseGone()
        case Stop.TIMEOUT:
            return TimedOut(timeout)
        case Stop.DRAIN if not _deliberate(answer):
            return Interrupted()
        case Stop.ASKED if isinstance(answer, Raised) and isinstance(answer.error, asyncio.CancelledError):
            return CancelAsked()
        case _:
            return answer


def _deliberate(answer: Answer) -> bool:
    """Whether it is the handler's own word, and no mere consequence of having been interrupted."""
    return isinstance(answer, Returned) or (isinstance(answer, Raised) and isinstance(answer.error, Outcome))
