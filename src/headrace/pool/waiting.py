"""Waiting on a clock from a task, and waiting out an outage."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from ..clock import SECOND, Clock
from ..errors import ConfigError, Unavailable
from ..text import describe
from .retry import Exponential, Jitter

log = logging.getLogger(__name__)

_BACKOFF = Exponential(base=0.05, ceiling=5.0, jitter=Jitter.EQUAL)
REFUSED = 5.0
"""Seconds between two tries while the store says in words why it will not, missing rights for instance: waiting mends
nothing, but somebody may."""
TOO_OFTEN = 10
"""So many unexpected errors in a row are no passing trouble: a loop that only fails must not look alive."""


async def wait(event: asyncio.Event, clock: Clock, until: int) -> None:
    """Wait for the event, or for the clock's steady time ``until``; clears the event. May return early."""
    if not event.is_set():
        alarm = clock.call_at(asyncio.get_running_loop(), until, event.set)
        try:
            await event.wait()
        finally:
            alarm.cancel()
    event.clear()


async def sleep(clock: Clock, seconds: float) -> None:
    """Sleep by the queue's clock."""
    until = clock.steady() + round(seconds * SECOND)
    event = asyncio.Event()
    while clock.steady() < until:
        await wait(event, clock, until)


class Outage:
    """The store does not answer one of the loops. Logged once when it begins and once when it is over."""

    def __init__(self, doing: str) -> None:
        self.doing = doing
        self._failures = 0
        self._unexpected = 0
        self.errors = 0
        """How many calls have failed in all."""

    @property
    def now(self) -> bool:
        return self._failures > 0

    @property
    def hopeless(self) -> bool:
        """It keeps failing in a way that waiting does not mend."""
        return self._unexpected >= TOO_OFTEN

    def failed(self, error: Exception) -> float:
        """Note a failure; returns for how many seconds to wait before the next try."""
        self.errors += 1
        self._failures += 1
        refused = isinstance(error, ConfigError)
        expected = refused or isinstance(error, Unavailable)
        self._unexpected = 0 if expected else self._unexpected + 1
        if self._failures == 1 and refused:
            log.error(
                "%s is refused, trying again every %g s until somebody has mended that: %s", self.doing, REFUSED, error
            )
        elif self._failures == 1:
            log.warning(
                "%s failed, trying again until it works: %s",
                self.doing,
                describe(error),
                exc_info=None if expected else error,
            )
        return REFUSED if refused else _BACKOFF.delay(self._failures, random.random)

    def over(self) -> None:
        """Note a success."""
        if self._failures:
            log.warning("%s works again after %d failures", self.doing, self._failures)
            self._failures = self._unexpected = 0


async def rounds(
    outage: Outage,
    work: Callable[[], Awaitable[bool | None]],
    clock: Clock,
    give_up: Callable[[str, Exception], None],
) -> None:
    """Do one round of work after the other, until one says that it was the last. One that fails is tried again,
    more and more slowly; one that only fails brings the pool down, for a pool that looks alive and does nothing is
    worse."""
    done: bool | None = False
    while not done:
        try:
            done = await work()
        except Exception as error:
            seconds = outage.failed(error)
            if outage.hopeless:
                give_up(f"{outage.doing} fails: {describe(error)}", error)
            await sleep(clock, seconds)
        else:
            if not done:
                outage.over()
