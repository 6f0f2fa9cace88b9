"""Async handlers: each in a task of its own on the pool's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from ...clock import Clock
from ..outcome import NEVER, RETURNED, Answer, Raised, Stop
from ..run import Run, after

GRACE = 0.25
"""Seconds that a cancelled coroutine may take to clean up before its slot goes on without it. It is not
harmed by that: it may finish its cleaning up, only nobody waits for it."""


class LoopRunner:
    """Starts, cancels and, where a coroutine swallows its cancellation, writes off."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._tasks: dict[asyncio.Task[Answer], Run] = {}  # the loop itself holds tasks weakly
        self.zombies = 0

    def start(self, run: Run) -> None:
        call = run.call
        assert call is not None
        run.arm(self._loop)
        self._launch(run, _called(call.function, call.args, call.kwargs))

    def adopt(self, run: Run, awaitable: Awaitable[object]) -> None:
        """Await what a sync handler returned."""
        run.runner = self
        self._launch(run, _awaited(awaitable))
        if run.stopped is not None:
            self.stop(run, run.stopped)

    def stop(self, run: Run, why: Stop) -> None:
        task = run.work
        assert isinstance(task, asyncio.Task)
        task.cancel()
        if why is not Stop.ASKED:
            if run.alarm is not None:
                run.alarm.cancel()
            run.alarm = self._clock.call_at(self._loop, after(self._clock, GRACE), lambda: self._write_off(run))

    def close(self) -> None:
        pass

    def busy(self) -> Run | None:
        """The run whose handler has the loop in this moment; may be asked from any thread."""
        task = asyncio.current_task(self._loop)
        return None if task is None else self._tasks.get(task)

    def _launch(self, run: Run, coroutine: Any) -> None:
        task = self._loop.create_task(coroutine, context=run.surroundings())
        self._tasks[task] = run
        run.work = task
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Answer]) -> None:
        run = self._tasks.pop(task)
        if run.written_off:
            self.zombies -= 1
        # Cancelled before its first step, a coroutine cannot catch anything.
        run.answer(Raised(asyncio.CancelledError()) if task.cancelled() else task.result())

    def _write_off(self, run: Run) -> None:
        if run.how is None:
            self.zombies += 1
            run.written_off = True
            run.answer(NEVER)


async def _called(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
    # BaseException: a SystemExit that left a task would end the loop and all its other handlers.
    try:
        await function(*args, **kwargs)
    except BaseException as error:
        return Raised(error)
    return RETURNED


async def _awaited(awaitable: Awaitable[object]) -> Answer:
    try:
        await awaitable
    except BaseException as error:
        return Raised(error)
    return RETURNED
