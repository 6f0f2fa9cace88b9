"""Async handlers: on the pool's event loop, in tasks."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from sys import getrefcount
from typing import Any
from weakref import getweakrefcount

from ...clock import Clock
from ..call import Call
from ..outcome import NEVER, RETURNED, Answer, Raised, Stop
from ..run import Run, after
from .steps import Started, awaited, begin, go_on

GRACE = 0.25
"""Seconds that a cancelled coroutine may take to clean up before its slot goes on without it. It is not
harmed by that: it may finish its cleaning up, only nobody waits for it."""

TURN = 0.0005
"""Seconds for which handlers that never wait may follow each other until the loop's other tasks have their turn."""


def _one_by_one(runs: list[Run]) -> None:
    for run in runs:
        run.done(run)


class LoopRunner:
    """Starts, cancels and, where a coroutine swallows its cancellation, writes off.

    ``returned`` gets those whose handlers have returned in their first step, several at a time, in place of their
    own ``done``."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        returned: Callable[[list[Run]], None] = _one_by_one,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._returned = returned
        self._tasks: dict[asyncio.Task[Any], Run] = {}  # the loop itself holds tasks weakly
        self._first: Run | None = None
        """The run that is in its first step."""
        self._todo: deque[tuple[Run, Call]] = deque()
        self._steppers: set[asyncio.Task[Any]] = set()
        """The tasks that are about to take what is to be done."""
        self.zombies = 0

    def start(self, run: Run) -> None:
        assert run.call is not None
        self._todo.append((run, run.call))
        if not self._steppers:
            self._call_stepper()

    def adopt(self, run: Run, awaitable: Awaitable[object]) -> None:
        """Await what a sync handler returned."""
        run.runner = self
        run.work = None
        if run.stopped is None:
            self._todo.append((run, Call(function=awaited, args=(awaitable,), kind="async", name=run.name)))
            if not self._steppers:
                self._call_stepper()
            return
        if inspect.iscoroutine(awaitable):
            awaitable.close()
        self.stop(run, run.stopped)

    def stop(self, run: Run, why: Stop) -> None:
        task = run.work
        if not isinstance(task, asyncio.Task):
            run.answer(Raised(asyncio.CancelledError()))  # before its first step it cannot catch anything
            return
        task.cancel()
        if why is not Stop.ASKED:
            if run.alarm is not None:
                run.alarm.cancel()
            run.alarm = self._clock.call_at(self._loop, after(self._clock, GRACE), lambda: self._write_off(run))

    def keep(self, size: int) -> None:
        pass

    def close(self) -> None:
        pass

    def busy(self) -> Run | None:
        """The run whose handler has the loop in this moment; may be asked from any thread."""
        task = asyncio.current_task(self._loop)
        return self._first or (None if task is None else self._tasks.get(task))

    def lead(self, task: asyncio.Task[Any]) -> None:
        """This task, the current one, will take the first steps of what is started from here on."""
        self._steppers.add(task)

    def first_steps(self, task: asyncio.Task[Any]) -> Coroutine[Any, Any, None] | None:
        """Take the first steps of what is to be done, in ``task``, the current one: up to the first handler that
        waits, or for one turn. None: nobody waits. Else the task is taken: to be awaited, and then to end with it."""
        todo, rest, turn = self._todo, None, 0.0
        try:
            while todo and rest is None:
                rest = self._first_steps(task)
                if todo:  # those that returned have made room for others, which follow them here
                    turn = turn or time.monotonic() + TURN
                    if time.monotonic() >= turn:
                        break
        finally:
            self._steppers.discard(task)
        if rest is None:
            if todo and not self._steppers:
                self._call_stepper()
            return None
        # Where one waits the others will as well: a task for each, so that they need not begin one after the other.
        for _ in range(len(todo) - len(self._steppers)):
            self._call_stepper()
        return rest

    def _first_steps(self, task: asyncio.Task[Any]) -> Coroutine[Any, Any, None] | None:
        """Of as many as are to be done now."""
        todo, copy_context = self._todo, contextvars.copy_context
        returned: list[Run] = []
        # When a handler has ended and its task has more references than before, somebody took note of the task, as a
        # key or to cancel it, and would take the next handler for this one.
        strong, weak = getrefcount(task), getweakrefcount(task)
        try:
            for _ in range(len(todo)):
                run, call = todo.popleft()
                if run.how is not None:
                    continue
                if run.timeout:
                    run.limit()
                self._first = run
                surroundings = copy_context()
                # BaseException: a SystemExit that left a task would end the loop and all its other handlers.
                try:
                    started = surroundings.run(begin, run.context, call.function, call.args, call.kwargs)
                except BaseException as error:
                    run.answer(Raised(error))
                else:
                    if started is not None:
                        return self._rest(task, run, surroundings, started)
                    if run.stopped is None and run.alarm is None:
                        run.how = RETURNED
                        returned.append(run)
                    else:
                        run.answer(RETURNED)
                if getrefcount(task) != strong or getweakrefcount(task) != weak or task.cancelling():
                    return _nothing()
            return None
        finally:
            self._first = None
            if returned:
                self._returned(returned)

    def _call_stepper(self) -> None:
        """Have a new task take what is to be done."""
        task = self._loop.create_task(self._steps())
        self._steppers.add(task)
        task.add_done_callback(self._gone)

    async def _steps(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        rest = self.first_steps(task)
        if rest is not None:
            await rest

    def _gone(self, task: asyncio.Task[None]) -> None:
        if task not in self._steppers:
            return
        self._steppers.discard(task)
        while self._todo and not self._steppers:
            # Somebody cancelled every task of the loop, these before their first steps.
            self._todo.popleft()[0].answer(Raised(asyncio.CancelledError()))

    def _rest(
        self, task: asyncio.Task[Any], run: Run, surroundings: contextvars.Context, started: Started
    ) -> Coroutine[Any, Any, None]:
        """The handler waits: it keeps the task from now on."""
        run.work = task
        self._tasks[task] = run
        if run.alarm is None:
            run.arm(self._loop)
        return self._go_on(task, run, surroundings, started)

    async def _go_on(
        self, task: asyncio.Task[Any], run: Run, surroundings: contextvars.Context, started: Started
    ) -> None:
        try:
            await go_on(surroundings, started)
        except BaseException as error:
            answer: Answer = Raised(error)
        else:
            answer = RETURNED
        del self._tasks[task]
        if run.written_off:
            self.zombies -= 1
        run.answer(answer)

    def _write_off(self, run: Run) -> None:
        if run.how is None:
            self.zombies += 1
            run.written_off = True
            run.answer(NEVER)


async def _nothing() -> None:
    pass
