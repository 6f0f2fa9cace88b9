"""Time, in whole microseconds, from two clocks.

``steady`` never steps: every duration (leases, delays, timeouts, waits) is measured by it. ``wall`` is the
calendar, which people and NTP move: it enters only where a caller names a calendar moment (``run_at``,
``deadline``) and where a moment is shown to one. Integers, so that two times are equal or not, never nearly.

A clock also does the waiting, because a virtual one must be able to end a wait without time passing.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Protocol

SECOND = 1_000_000
FAR = 1 << 62
"""Later than every moment that a queue deals with."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
LATEST = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


class Handle(Protocol):
    """A pending call that can be taken back; asyncio.TimerHandle is one."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Two readings in microseconds, and two ways of waiting for the steady one."""

    def steady(self) -> int:
        """Microseconds since an arbitrary moment; never steps."""

    def wall(self) -> int:
        """Microseconds since 1970-01-01 UTC; may step."""

    def acquire(self, lock: threading.Lock, until: int) -> bool:
        """Block the calling thread until it has ``lock`` (True) or ``steady()`` reaches ``until`` (False)."""

    def call_at(self, loop: asyncio.AbstractEventLoop, at: int, callback: Callable[[], None]) -> Handle:
        """Call ``callback`` in ``loop`` once ``steady()`` reaches ``at``. Called from the loop's own thread."""


def _boot() -> str:
    """What tells this boot of the machine from the last: the steady clock begins anew with each."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:  # not Linux: the minute of the boot, as near as the wall clock knows it
        return f"booted in minute {round((time.time() - time.monotonic()) / 60)}"


class SystemClock:
    """The machine's own clocks. The steady one is shared by all processes of one ``boot``."""

    @cached_property
    def boot(self) -> str:
        return _boot()

    def steady(self) -> int:
        return time.monotonic_ns() // 1000

    def wall(self) -> int:
        return time.time_ns() // 1000

    def acquire(self, lock: threading.Lock, until: int) -> bool:
        if until >= FAR:
            return lock.acquire()
        seconds = (until - self.steady()) / SECOND
        return lock.acquire(timeout=min(max(seconds, 0.0), threading.TIMEOUT_MAX))

    def call_at(self, loop: asyncio.AbstractEventLoop, at: int, callback: Callable[[], None]) -> Handle:
        # A loop refuses nothing, but select() cannot wait for centuries: a day is as good, it is asked again.
        return loop.call_later(min((at - self.steady()) / SECOND, 86_400.0), callback)


def to_datetime(micros: int) -> datetime:
    """Microseconds since 1970 as an aware datetime in UTC, exact; beyond the calendar, its nearest end."""
    try:
        return EPOCH + MICROSECOND * micros
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if micros > 0 else datetime.min.replace(tzinfo=UTC)


def to_micros(moment: datetime) -> int:
    """An aware datetime as microseconds since 1970, exact."""
    return (moment - EPOCH) // timedelta(microseconds=1)
