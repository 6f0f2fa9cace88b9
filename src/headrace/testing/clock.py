"""A clock that moves only when told to, and an event loop that tells it to when everyone waits.

Threads that wait on the clock are woken by ``advance`` in the order of their times; tasks too. A wait of 30 s
takes no time, and every reading is exact, so tests compare times with ``==``.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import selectors
import threading
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

from ..clock import FAR, SECOND, Handle, to_datetime, to_micros

T = TypeVar("T")
START = datetime(2026, 1, 1, tzinfo=UTC)


class _Timer:
    """One moment at which something is to be called; the handle that takes it back."""

    __slots__ = ("callback", "cancelled")

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class VirtualClock:
    """Stands still until ``advance``. ``step`` moves the wall clock alone, as NTP or an operator would."""

    def __init__(self, start: datetime = START) -> None:
        self._changed = threading.Condition()
        self._now = to_micros(start)
        self._skew = 0
        self._timers: list[tuple[int, int, _Timer]] = []
        self._order = itertools.count()
        self._waiting = 0

    def steady(self) -> int:
        return self._now

    def wall(self) -> int:
        return self._now + self._skew

    def now(self) -> datetime:
        """The wall clock as an aware datetime."""
        return to_datetime(self.wall())

    def advance(self, seconds: float) -> None:
        """Let time pass: whatever falls due on the way is called at its own moment, in order."""
        if seconds < 0:
            raise ValueError(f"advance: time does not run backwards ({seconds} s); step() moves the wall clock")
        self._advance_to(self._now + round(seconds * SECOND))

    def step(self, seconds: float) -> None:
        """Move the wall clock by ``seconds``, forwards or backwards; no time passes."""
        self._skew += round(seconds * SECOND)

    @property
    def waiting(self) -> int:
        """How many threads and tasks wait on this clock now."""
        with self._changed:
            return self._waiting

    def until_waiting(self, count: int, limit: float = 10.0) -> None:
        """Block, in real time, until ``count`` threads or tasks wait on this clock."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting >= count, limit):
                raise TimeoutError(f"only {self._waiting} of {count} were waiting after {limit} s")

    def next_timer(self) -> int:
        """The next moment at which something is due, or FAR."""
        with self._changed:
            while self._timers and self._timers[0][2].cancelled:
                heapq.heappop(self._timers)
            return self._timers[0][0] if self._timers else FAR

    def acquire(self, lock: threading.Lock, until: int) -> bool:
        if until <= self._now:
            return lock.acquire(blocking=False)
        timed_out = False

        def expire() -> None:
            nonlocal timed_out
            timed_out = True
            try:
                lock.release()
            except RuntimeError:  # somebody else woke the thread in this very moment
                timed_out = False

        timer = self._add(until, expire)
        self._count(+1)
        try:
            lock.acquire()
        finally:
            timer.cancel()
            self._count(-1)
        return not timed_out

    def call_at(self, loop: asyncio.AbstractEventLoop, at: int, callback: Callable[[], None]) -> Handle:
        def fire() -> None:
            loop.call_soon_threadsafe(lambda: None if timer.cancelled else callback())

        timer = self._add(at, fire)
        return timer

    def _add(self, at: int, callback: Callable[[], None]) -> _Timer:
        timer = _Timer(callback)
        with self._changed:
            if at < FAR:
                heapq.heappush(self._timers, (at, next(self._order), timer))
        return timer

    def _count(self, change: int) -> None:
        with self._changed:
            self._waiting += change
            self._changed.notify_all()

    def _advance_to(self, target: int) -> None:
        while (due := self.next_timer()) <= target:
            with self._changed:
                self._now = max(self._now, due)
                _, _, timer = heapq.heappop(self._timers)
            timer.callback()
        self._now = max(self._now, target)


class _JumpingSelector(selectors.DefaultSelector):
    """Where a loop would sleep, this one moves the clock instead."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if self.loop.threads:
            return super().select(0.05)  # a thread is at work: let it finish before time moves
        target = self.loop.clock.next_timer()
        if timeout is not None:
            target = min(target, self.loop.clock.steady() + max(1, round(timeout * SECOND)))
        if target >= FAR:
            # A thread nobody told us of may still call in; one that never does is a deadlock.
            if ready := super().select(self.loop.patience):
                return ready
            raise RuntimeError("deadlock: every task waits and no timer is set")
        self.loop.clock._advance_to(target)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on a virtual clock: when every task waits, time jumps to the next timer."""

    def __init__(self, clock: VirtualClock, patience: float = 5.0) -> None:
        self.clock = clock
        self.threads = 0
        self.patience = patience
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.clock.steady() / SECOND

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        future = super().run_in_executor(executor, func, *args)
        self.threads += 1
        future.add_done_callback(self._thread_done)
        return future

    def _thread_done(self, _: object) -> None:
        self.threads -= 1


def run_virtual(main: Coroutine[Any, Any, T], clock: VirtualClock) -> T:
    """Run a coroutine to its end in virtual time, as ``asyncio.run`` does in real time."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        return runner.run(main)


def wait_until(condition: Callable[[], bool], limit: float = 10.0) -> None:
    """Block, in real time, until ``condition()`` holds: for what other threads and processes do."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"did not come true within {limit} s")
        time.sleep(0.002)
