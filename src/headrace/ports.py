"""How a step of the logic is carried out: in the caller's thread, on its loop, or in a thread beside it.

The logic in ``calls.py`` is written once, as coroutines. Behind a sync face they never suspend: waiting blocks
the thread instead, so ``run`` takes such a coroutine to its end in one go. Behind an async face they do suspend.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, Protocol, TypeVar

from . import fork
from .waiting import TaskTicket, ThreadTicket, Ticket

T = TypeVar("T")
P = ParamSpec("P")


def run(call: Coroutine[Any, Any, T]) -> T:
    """Take a coroutine that never suspends to its end."""
    try:
        call.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    call.close()
    raise RuntimeError("a blocking call suspended: its port is not a ThreadPort")


class Port(Protocol):
    def ticket(self) -> Ticket: ...
    async def call(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Carry out one step of the store."""

    async def take(self, step: Callable[[int], list[T]], limit: int, undo: Callable[[list[T]], object]) -> list[T]:
        """The same for the step that hands out jobs: a caller that is cancelled meanwhile has none of them."""

    def close(self) -> None:
        """Give back what carried the steps out; a later step takes it again."""


class ThreadPort:
    """For sync callers: everything happens in their own thread."""

    def ticket(self) -> Ticket:
        return ThreadTicket()

    async def call(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return step(*args, **kwargs)

    async def take(self, step: Callable[[int], list[T]], limit: int, undo: Callable[[list[T]], object]) -> list[T]:
        return step(limit)

    def close(self) -> None:
        pass


class LoopPort(ThreadPort):
    """For async callers of a store whose steps are quick: right on the loop, with nothing to interrupt."""

    def ticket(self) -> Ticket:
        return TaskTicket()


class ExecutorPort(LoopPort):
    """For async callers of a store whose steps touch a disk or a network: in ``threads`` of its own."""

    def __init__(self, name: str, threads: int = 1) -> None:
        self._name = name
        self._threads = threads
        self._started: ThreadPoolExecutor | None = None
        fork.register(self)

    @property
    def _executor(self) -> ThreadPoolExecutor:
        if self._started is None:
            self._started = ThreadPoolExecutor(self._threads, thread_name_prefix=self._name)
        return self._started

    def close(self) -> None:
        started, self._started = self._started, None
        if started is not None:
            started.shutdown(wait=False)

    def before_fork(self) -> None:
        pass

    def after_fork_in_parent(self) -> None:
        pass

    def after_fork_in_child(self) -> None:
        self._started = None  # its thread lives in the parent only

    async def call(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._executor, lambda: step(*args, **kwargs))
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            done.add_done_callback(_look_at)  # the step goes on; nobody is left to be told how it ended
            raise

    async def take(self, step: Callable[[int], list[T]], limit: int, undo: Callable[[list[T]], object]) -> list[T]:
        under_way = self._executor.submit(step, limit)
        try:
            return await asyncio.shield(asyncio.wrap_future(under_way))
        except asyncio.CancelledError:
            # The step may be under way. Whatever it takes goes back, right behind it in the same thread, which
            # needs no event loop for that: this one may be about to end.
            under_way.add_done_callback(lambda taken: taken.exception() or undo(taken.result()))
            raise


def _look_at(done: asyncio.Future[T]) -> None:
    if not done.cancelled():
        done.exception()
