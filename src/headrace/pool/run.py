"""One attempt on its way through the pool: picked up, running, ended, settled.

Everything here happens on the event loop's thread; other threads come in by ``call_soon_threadsafe``.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import Protocol

import msgspec

from ..clock import FAR, SECOND, Clock, Handle
from ..job import Job
from .call import Call
from .context import Context, enter
from .outcome import Answer, Ended, Stop, ended


class Runner(Protocol):
    """Runs calls in some surroundings. It answers each run exactly once; later answers are ignored."""

    @property
    def zombies(self) -> int:
        """How many handlers were written off and still run."""

    def start(self, run: Run) -> None:
        """Begin; ``run.answer`` follows, sooner or later."""

    def stop(self, run: Run, why: Stop) -> None:
        """Make it end: gently where it was only asked for, else for certain."""

    def keep(self, size: int) -> None:
        """So many workers are there from now on: let go of what idles beyond that."""

    def close(self) -> None:
        """Let go of what idles. What still runs does not keep the process from ending."""


class Run(msgspec.Struct, eq=False):
    """A leased job, and how far this attempt has come. A struct, as making one costs half of what a class would."""

    context: Context
    clock: Clock
    began: int
    """The steady time at which it was picked up; once it has begun, that of its beginning."""
    lease_end: int
    """The steady time at which the lease must be over, unless it is extended."""
    done: Callable[[Run], None]
    """Called once, when it has ended."""
    call: Call | None = None
    runner: Runner | None = None
    work: object = None
    """The runner's own: the task, thread or child at work."""
    alarm: Handle | None = None
    """What comes next if nothing happens: the timeout, then the end of the grace."""
    stopped: Stop | None = None
    how: Ended | None = None
    timeout: float = 0.0
    """Seconds that it may run; 0.0: as long as it likes."""
    until: int = FAR
    """The steady time at which they are over; known when it begins."""
    error: str | None = None
    """Why it failed."""
    settling: bool = False
    """It is being settled: the heartbeat leaves it alone."""
    written_off: bool = False
    """The answer was given in its stead; the handler still runs."""

    def __repr__(self) -> str:
        return f"<Run of job {self.job.id!r}>"

    @property
    def job(self) -> Job:
        return self.context.job

    @property
    def name(self) -> str:
        return "?" if self.call is None else self.call.name

    def surroundings(self) -> contextvars.Context:
        """The context variables in which the handler runs: a copy of the pool's, with its own Context."""
        copied = contextvars.copy_context()
        copied.run(enter, self.context)
        return copied

    def limit(self) -> None:
        """The handler begins: from now on its timeout runs, and it can see that."""
        if self.timeout and self.until == FAR:
            self.until = after(self.clock, self.timeout)
            self.context.limit(self.until)

    def arm(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the alarm that tells it to stop at the end of its time."""
        self.limit()
        if not self.timeout or self.how is not None or (self.stopped or Stop.ASKED) is not Stop.ASKED:
            return

        def ring() -> None:
            if self.clock.steady() < self.until:  # an alarm may ring early
                self.alarm = self.clock.call_at(loop, self.until, ring)
            else:
                self.stop(Stop.TIMEOUT)

        ring()

    def answer(self, answer: Answer) -> None:
        """The attempt has ended. The first answer counts."""
        if self.how is None:
            if self.alarm is not None:
                self.alarm.cancel()
                self.alarm = None
            self.how = ended(self.stopped, answer, self.timeout)
            self.done(self)

    def stop(self, why: Stop) -> None:
        """Tell the handler to stop; a lesser reason than before changes nothing."""
        if self.how is not None or (self.stopped is not None and why <= self.stopped):
            return
        self.stopped = why
        self.context.tell(why)
        if self.runner is not None:
            self.runner.stop(self, why)


def after(clock: Clock, seconds: float) -> int:
    """The steady time so many seconds from now."""
    return clock.steady() + round(seconds * SECOND)


def lease_of(job: Job) -> tuple[str, str, int]:
    """Which lease it is: ids are unique in one queue only, and one job may be leased here twice."""
    return job.queue, job.id, job.fence
