"""What a running handler may know: its job, its time, and whether it should stop.

A task is cancelled from outside, but a thread cannot be: a sync handler that runs for long asks
``current().cancelled`` now and then, or sleeps in ``wait_cancelled``.
"""

from __future__ import annotations

import contextvars
import threading
from datetime import datetime
from typing import cast

import msgspec

from ..clock import FAR, SECOND, Clock, to_datetime
from ..job import Cancel, Job
from ..queue import Settled, running
from .outcome import Stop

# The same variable, in which whoever settles a job in a transaction finds the attempt that it runs in.
_current = cast("contextvars.ContextVar[Context]", running)


def current() -> Context:
    """The context of the handler that calls this, from its task, its thread or its process."""
    try:
        return _current.get()
    except LookupError:
        raise RuntimeError("no handler is running here: current() is for code that a pool called") from None


enter = _current.set
"""Make a Context the current one, for the contextvars context in which this is called."""


by_hand: dict[Context, Settled] = {}
"""The attempts whose handlers have settled their jobs themselves, and how; a pool forgets its own at their end."""


class Context(msgspec.Struct, eq=False):
    """One attempt, seen from inside. Every method may be called from any thread."""

    job: Job
    """The newest snapshot: each heartbeat brings one, with the new ``lease_until``."""
    _clock: Clock
    _until: int | None = None
    _stop: Stop | None = None
    _waiters: list[threading.Lock] = []  # msgspec makes a new one for each

    def __repr__(self) -> str:
        return f"<Context of job {self.job.id!r}>"

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop: the job was cancelled, its time is over, its lease is lost, or the
        worker is shutting down and cannot wait any longer."""
        return self._stop is not None

    @property
    def reason(self) -> str | None:
        """Why it should stop; None while it should not."""
        return None if self._stop is None else self._stop.text

    @property
    def time_left(self) -> float | None:
        """Seconds until this attempt times out; None without a timeout."""
        return None if self._until is None else max(0.0, (self._until - self._clock.steady()) / SECOND)

    @property
    def deadline(self) -> datetime | None:
        """When this attempt times out, by the wall clock of now; None without a timeout."""
        if self._until is None:
            return None
        return to_datetime(self._clock.wall() + self._until - self._clock.steady())

    def wait_cancelled(self, timeout: float | None = None) -> bool:
        """Block this thread until the handler should stop (True) or ``timeout`` seconds have passed (False).
        The sleep for sync handlers; an async one is cancelled wherever it awaits."""
        until = FAR if timeout is None else self._clock.steady() + round(timeout * SECOND)
        bell = threading.Lock()
        bell.acquire()
        self._waiters.append(bell)
        # In this order, ``tell`` either sees the bell or is seen here.
        if self._stop is None:
            self._clock.acquire(bell, until)
        self._waiters.remove(bell)
        return self.cancelled

    def raise_if_cancelled(self) -> None:
        """Raise Cancel when the handler should stop; what becomes of the job depends on the reason."""
        if self._stop is not None:
            raise Cancel(self._stop.text)

    def settled(self, job: Job, how: Settled) -> None:
        """The handler has settled ``job`` in a transaction of its own; if that is the job of this attempt, the pool
        does not settle it. ``queue.within`` calls this."""
        mine = self.job
        if (job.queue, job.id, job.fence) == (mine.queue, mine.id, mine.fence):
            by_hand[self] = how

    def limit(self, until: int | None) -> None:
        """The pool's: this attempt may run until then, on the steady clock."""
        self._until = until

    def tell(self, stop: Stop) -> None:
        """The pool's: the handler should stop. A graver reason replaces a lesser one."""
        if self._stop is None or stop > self._stop:
            self._stop = stop
        for bell in tuple(self._waiters):
            try:
                bell.release()
            except RuntimeError:
                pass  # told before; it is about to leave
