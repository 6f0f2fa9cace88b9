"""One test's workbench: a clock, queues behind one of the two faces, and callers in the background.

A test of the suite is one body for both faces. Behind the async face, each call runs as a task on a private event
loop in a thread of its own, while the caller blocks: waiting, waking and cancelling are the async face's own.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar, cast

from ..job import Job, Stats
from ..queue import AsyncQueue, Queue
from .clock import VirtualClock, wait_until
from .raw import RawState, check_change, check_counts, check_state, check_stats

T = TypeVar("T")


class Maker(Protocol):
    """What a contract class brings: see QueueContract."""

    def make_queue(self, **settings: Any) -> Queue: ...
    def reopen_queue(self, queue: Queue) -> Queue: ...
    def raw_state(self, queue: Queue) -> RawState | None: ...


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="suite-loop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.loop.run_forever()

    def close(self) -> None:
        async def cancel_all() -> None:
            rest = asyncio.all_tasks() - {asyncio.current_task()}
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(cancel_all(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()


class Bridge:
    """The async face, for callers that block."""

    def __init__(self, queue: AsyncQueue, loop: Loop) -> None:
        self._queue = queue
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        target = getattr(self._queue, name)
        if not inspect.iscoroutinefunction(target):
            return target

        def call(*args: Any, **given: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(target(*args, **given), self._loop.loop).result()

        return call


class Checked:
    """A queue whose invariants are checked after every call, whether it returned or raised."""

    def __init__(self, queue: Queue, plain: Queue, look: Callable[[Queue], RawState | None]) -> None:
        self.plain = plain
        """The queue as it was made: for the hooks."""
        self._queue = queue
        self._look = look
        self._gate = threading.Lock()
        self._under_way = 0
        self._stats: Stats | None = None
        self._raw: RawState | None = None
        self._fences: dict[str, int] = {}
        self._audit("making it", True)

    def __getattr__(self, name: str) -> Any:
        target = getattr(self._queue, name)
        if name.startswith("_") or not callable(target):
            return target

        def call(*args: Any, **given: Any) -> Any:
            with self._gate:
                self._under_way += 1
            moved = False
            try:
                answer = target(*args, **given)
                moved = name != "close"  # a second close has nothing to do
                return answer
            finally:
                with self._gate:
                    self._under_way -= 1
                    self._audit(name, moved)

        return call

    def _audit(self, call: str, moved: bool) -> None:
        raw = self._look(self.plain)
        stats = self.plain.stats()
        check_stats(self._stats, stats)
        self._stats = stats
        if raw is not None and not self._under_way:
            # With another call under way (a long poll), two looks in a row need not see the same.
            check_state(raw, stats.capacity, moved=moved)
            if moved:
                check_counts(raw, stats)
            if self._raw is not None:
                check_change(call, self._raw, raw, self._fences)
        self._raw = None if self._under_way else raw


class Bench:
    """What a test of the suite gets. ``limit``: real seconds until something that should happen has not."""

    def __init__(self, maker: Maker, face: str = "sync", limit: float = 10.0) -> None:
        self.clock = VirtualClock()
        self.limit = limit
        self.face = face
        self._maker = maker
        self._loop = Loop() if face == "async" else None
        self._opened: list[Queue] = []
        self._threads: list[threading.Thread] = []

    def open(self, **settings: Any) -> Queue:
        """A queue on the bench's clock, checked after every call."""
        return self.checked(self.plain(**settings))

    def plain(self, **settings: Any) -> Queue:
        """A queue on the bench's clock, unchecked: for many threads at once."""
        queue = self._maker.make_queue(**{"clock": self.clock, **settings})
        self._opened.append(queue)
        return queue

    def quiet(self, **settings: Any) -> Queue:
        """The same, unchecked until the end: a look at the figures wakes whoever there is something for, and would
        cover up that a wake-up was lost. For tests of waiting."""
        return self.face_of(self.plain(**settings))

    def face_of(self, plain: Queue) -> Queue:
        return plain if self._loop is None else cast(Queue, Bridge(plain.as_async, self._loop))

    def checked(self, plain: Queue) -> Queue:
        return cast(Queue, Checked(self.face_of(plain), plain, self._maker.raw_state))

    def again(self, queue: Queue) -> Queue:
        """A second handle on the same storage; for durable backends."""
        plain = self._maker.reopen_queue(queue.plain if isinstance(queue, Checked) else queue)
        self._opened.append(plain)
        return self.checked(plain)

    def spawn(self, call: Callable[..., T], *args: Any, **given: Any) -> Future[T]:
        """Call in a thread of its own."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(call(*args, **given))
            except BaseException as error:  # whatever it is belongs to whoever asks for the result
                future.set_exception(error)

        thread = threading.Thread(target=run, name="suite-caller", daemon=True)
        self._threads.append(thread)
        thread.start()
        return future

    def waiters(self, count: int, queue: Queue, timeout: float = 3600.0) -> list[Future[Job | None]]:
        """``count`` long polls, which entered the line one after the other."""
        polls = []
        for _ in range(count):
            before = self.clock.waiting
            polls.append(self.spawn(queue.dequeue, timeout=timeout))
            self.clock.until_waiting(before + 1, self.limit)
        return polls

    def settle(self) -> None:
        """Give those whom ``advance`` woke the time to run, and to wait again if they will. For tests in which a
        caller may well sleep on: one that must not, is asked for its ``result``."""
        quiet = self.clock.waiting
        for _ in range(5):
            time.sleep(0.002)
            quiet, before = self.clock.waiting, quiet
            if quiet == before:
                return

    def result(self, future: Future[T]) -> T:
        return future.result(self.limit)

    def eventually(self, condition: Callable[[], bool], limit: float) -> bool:
        """Whether ``condition()`` comes true within ``limit`` real seconds."""
        try:
            wait_until(condition, limit)
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        for queue in self._opened:
            queue.close()
        end = time.monotonic() + self.limit
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        if self._loop is not None:
            self._loop.close()
        left = [thread.name for thread in self._threads if thread.is_alive()]
        assert not left, f"{len(left)} callers still wait after the close"
        for queue in self._opened:
            check_stats(None, queue.stats())


@contextmanager
def bench(maker: Maker, face: str = "sync", limit: float = 10.0) -> Iterator[Bench]:
    made = Bench(maker, face, limit)
    try:
        yield made
    finally:
        made.close()


def drain(queue: Queue) -> list[str]:
    """Take and ack all that is ready; the ids in order."""
    taken: list[str] = []
    while (job := queue.dequeue(timeout=0)) is not None:
        taken.append(job.id)
        queue.ack(job)
    return taken


def lease(queue: Queue) -> Job:
    """The job that must be there now."""
    job = queue.dequeue(timeout=0)
    assert job is not None, "nothing was ready"
    return job
