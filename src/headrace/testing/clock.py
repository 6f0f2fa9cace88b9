"""A clock that moves only when told to, and an event loop that tells it to when everyone waits.

Threads and tasks that wait on the clock are woken by ``advance`` in the order of their times. A wait of 30 s
takes no time, and every reading is exact, so tests compare times with ``==``.

``advance`` does not wait for those it woke: they run when the machine lets them, and then read the time at which
``advance`` ended. A test that cares for the moment advances to that moment, and looks, before it goes on.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import selectors
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from datetime import UTC, datetime
from typing import Any, TypeVar, TypeVarTuple

from ..clock import FAR, SECOND, Handle, to_datetime, to_micros

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
START = datetime(2026, 1, 1, tzinfo=UTC)


class _Timer:
    """Somebody who waits on the clock, with what is called when the time has come; the handle to give up."""

    __slots__ = ("_clock", "callback", "pending")

    def __init__(self, clock: VirtualClock, callback: Callable[[], None]) -> None:
        self._clock = clock
        self.callback = callback
        self.pending = True

    def cancel(self) -> None:
        self._clock._end(self)


class VirtualClock:
    """Stands still until ``advance``. ``step`` moves the wall clock alone, as NTP or an operator would."""

    def __init__(self, start: datetime = START) -> None:
        self._changed = threading.Condition()
        self._now = to_micros(start)
        self._skew = 0
        self._timers: list[tuple[int, int, _Timer]] = []
        self._order = itertools.count()
        self._waiting = 0
        self._woken: set[threading.Thread] = set()
        """Threads whose wait time has ended, and that have not waited again since."""

    def steady(self) -> int:
        return self._now

    def wall(self) -> int:
        return self._now + self._skew

    def now(self) -> datetime:
        """The wall clock as an aware datetime."""
        return to_datetime(self.wall())

    def advance(self, seconds: float) -> None:
        """Let time pass: whatever falls due on the way is called at its own moment, in order."""
        if not seconds >= 0:
            raise ValueError(f"advance: time does not run backwards ({seconds} s); step() moves the wall clock")
        self._advance_to(self._now + round(seconds * SECOND))

    def step(self, seconds: float) -> None:
        """Move the wall clock by ``seconds``, forwards or backwards; no time passes."""
        self._skew += round(seconds * SECOND)

    @property
    def waiting(self) -> int:
        """How many threads and tasks wait on this clock now; a task that waits for ever is not seen."""
        with self._changed:
            return self._waiting

    def until_waiting(self, count: int, limit: float = 10.0) -> None:
        """Block, in real time, until at least ``count`` threads and tasks wait on this clock."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting >= count, limit):
                raise TimeoutError(f"only {self._waiting} of {count} were waiting after {limit} s")

    def next_timer(self) -> int:
        """The next moment at which something is due, or FAR."""
        with self._changed:
            return self._head()

    def settle(self, limit: float = 1.0) -> None:
        """Block, in real time, until the threads that time has woken wait again or have ended; at most ``limit``
        seconds, for one of them may have left for something else."""
        with self._changed:
            self._changed.wait_for(lambda: not any(thread.is_alive() for thread in self._woken), limit)
            self._woken.clear()

    def acquire(self, lock: threading.Lock, until: int) -> bool:
        timed_out = False
        thread = threading.current_thread()
        with self._changed:
            self._woken.discard(thread)
            self._changed.notify_all()

        def expire() -> None:
            nonlocal timed_out
            timed_out = True
            with self._changed:
                self._woken.add(thread)
            try:
                lock.release()
            except RuntimeError:  # somebody else woke the thread in this very moment
                timed_out = False

        timer = self._add(until, expire)
        if timer is None:
            return lock.acquire(blocking=False)
        try:
            lock.acquire()
        finally:
            timer.cancel()
        if timed_out:
            # Woken by somebody and by the clock: both released it. Timed out means that it is held by nobody new.
            lock.acquire(blocking=False)
        return not timed_out

    def call_at(self, loop: asyncio.AbstractEventLoop, at: int, callback: Callable[[], None]) -> Handle:
        cancelled = False

        class Pending:
            def cancel(self) -> None:
                nonlocal cancelled
                cancelled = True
                if timer is not None:
                    timer.cancel()

        def call() -> None:
            if not cancelled:
                callback()

        def fire() -> None:
            try:
                loop.call_soon_threadsafe(call)
            except RuntimeError:  # the loop is closed, and whoever waited in it is gone
                pass

        timer = self._add(at, fire)
        if timer is None:
            loop.call_soon(call)
        return Pending()

    def _add(self, at: int, callback: Callable[[], None]) -> _Timer | None:
        """None when ``at`` has come: told under the lock, for a timer behind the time would never be called."""
        with self._changed:
            if at <= self._now:
                return None
            timer = _Timer(self, callback)
            if at < FAR:
                heapq.heappush(self._timers, (at, next(self._order), timer))
            self._waiting += 1
            self._changed.notify_all()
            return timer

    def _end(self, timer: _Timer) -> None:
        with self._changed:
            if timer.pending:
                timer.pending = False
                self._waiting -= 1
                self._changed.notify_all()

    def _head(self) -> int:
        while self._timers and not self._timers[0][2].pending:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else FAR

    def _advance_to(self, target: int) -> None:
        while True:
            with self._changed:
                due = self._head()
                if due > target:
                    self._now = max(self._now, target)
                    return
                self._now = max(self._now, due)
                _, _, timer = heapq.heappop(self._timers)
            self._end(timer)
            timer.callback()


class _JumpingSelector(selectors.DefaultSelector):
    """Where a loop would sleep, this one moves the clock instead."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if self.loop.threads:
            return super().select(0.05)  # a thread is at work: let it finish before time moves
        self.loop.clock.settle()  # and so is one that the last move has woken, a heartbeat perhaps
        if ready := super().select(0):
            return ready
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
        # A timer is due within the clock's own step. asyncio's nanosecond is lost in a float as large as a date,
        # and the loop would spin for ever upon a timer that is due now but never runs.
        self._clock_resolution = 1 / SECOND

    def time(self) -> float:
        return self.clock.steady() / SECOND

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self.threads += 1
        future.add_done_callback(self._thread_done)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Joins the executor's threads in one that ``threads`` would not count, so that time would jump on meanwhile:
        no timeout, then, and time stands still."""
        self.threads += 1
        try:
            await super().shutdown_default_executor()
        finally:
            self.threads -= 1

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
