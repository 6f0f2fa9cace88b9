"""Async handlers: on the pool's event loop, in tasks."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

from ...clock import Clock
from ..outcome import NEVER, RETURNED, Answer, Raised, Stop
from ..run import Run, after
from .steps import Started, awaited, begin, go_on, holders

GRACE = 0.25
"""Seconds that a cancelled coroutine may take to clean up before its slot goes on without it. It is not
harmed by that: it may finish its cleaning up, only nobody waits for it."""

_Todo: TypeAlias = "deque[tuple[Run, Callable[..., Any], tuple[Any, ...], dict[str, Any]]]"


class LoopRunner:
    """Starts, cancels and, where a coroutine swallows its cancellation, writes off."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._tasks: dict[asyncio.Task[Any], Run] = {}  # the loop itself holds tasks weakly
        self._todo: _Todo = deque()
        self._steppers: set[asyncio.Task[Any]] = set()
        """The tasks that are about to take what is to be done."""
        self.zombies = 0

    def start(self, run: Run) -> None:
        call = run.call
        assert call is not None
        self._enqueue(run, call.function, call.args, call.kwargs)

    def adopt(self, run: Run, awaitable: Awaitable[object]) -> None:
        """Await what a sync handler returned."""
        run.runner = self
        run.work = None
        if run.stopped is None:
            self._enqueue(run, awaited, (awaitable,), {})
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
        return None if task is None else self._tasks.get(task)

    def lead(self) -> None:
        """The current task will take the first steps of what is started from here on: see ``first_steps``."""
        task = asyncio.current_task()
        assert task is not None
        self._steppers.add(task)

    def first_steps(self) -> Coroutine[Any, Any, None] | None:
        """Take the first steps of what is to be done, in the current task, up to the first handler that waits. None:
        all have ended. Else the task is taken: to be awaited, and then to end with it."""
        task = asyncio.current_task()
        assert task is not None
        self._steppers.discard(task)
        todo, untouched, rest = self._todo, holders(task), None
        while todo and rest is None:
            run, function, args, kwargs = todo.popleft()
            if run.how is not None:
                continue
            if run.timeout and run.alarm is None:
                run.arm(self._loop)
            run.work = task
            self._tasks[task] = run
            surroundings = contextvars.copy_context()
            # BaseException: a SystemExit that left a task would end the loop and all its other handlers.
            try:
                started = surroundings.run(begin, run.context, function, args, kwargs)
            except BaseException as error:
                run.answer(Raised(error))
            else:
                if started is not None:
                    rest = self._rest(task, run, surroundings, started)
                    break
                run.answer(RETURNED)
            del self._tasks[task]
            run.work = None
            if holders(task) != untouched or task.cancelling():
                rest = _nothing()
        # Where one waits the others will as well: a task for each, so that they need not begin one after the other.
        for _ in range(len(todo) - len(self._steppers)):
            self._call_stepper()
        return rest

    def _enqueue(self, run: Run, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._todo.append((run, function, args, kwargs))
        if not self._steppers:
            self._call_stepper()

    def _call_stepper(self) -> None:
        """Have a new task take what is to be done."""
        task = self._loop.create_task(self._steps())
        self._steppers.add(task)
        task.add_done_callback(self._gone)

    async def _steps(self) -> None:
        rest = self.first_steps()
        if rest is not None:
            await rest

    def _gone(self, task: asyncio.Task[None]) -> None:
        if task not in self._steppers:
            return
        self._steppers.discard(task)
        while self._todo and not self._steppers:
            # Somebody cancelled every task of the loop, these before their first steps.
            self._todo.popleft()[0].answer(Raised(asyncio.CancelledError()))

    async def _rest(
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
