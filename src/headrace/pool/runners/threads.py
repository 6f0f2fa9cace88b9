"""Sync handlers: each in a thread, one at a time.

A thread cannot be killed. One whose handler overruns is written off: its slot goes on with a new thread, what
it answers later is ignored, and it ends when its handler does. They are daemons, for a hung one must not keep
the process from ending; ThreadPoolExecutor would wait for it.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import itertools
import queue
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from ...clock import FAR
from ..outcome import NEVER, RETURNED, Answer, Raised, Stop
from ..run import Run
from .loop import LoopRunner

_Inbox: TypeAlias = "queue.SimpleQueue[tuple[contextvars.Context, Run] | None]"
_Body: TypeAlias = Callable[[Run], "Answer | Awaitable[object]"]


class Threads:
    """Threads that each do ``body(run)``; started on demand, kept for the next one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str, body: _Body) -> None:
        self._loop = loop
        self._name = name
        self._body = body
        self._inboxes: set[_Inbox] = set()
        """Of all threads, those included that were written off."""
        self._idle: list[_Inbox] = []
        self._busy = 0
        self._size = FAR
        self._numbers = itertools.count(1)

    def start(self, run: Run, done: Callable[[Run, Answer | Awaitable[object]], None]) -> None:
        """Run it in a thread; ``done`` is called on the event loop."""
        inbox = self._idle.pop() if self._idle else self._grow(done)
        self._busy += 1
        inbox.put((run.surroundings(), run))

    def keep(self, size: int) -> None:
        """So many threads are wanted from now on: idle ones beyond that end."""
        self._size = size
        while self._idle and len(self._idle) + self._busy > size:
            self._idle.pop().put(None)

    def forget(self) -> None:
        """One of the busy is written off: it does not count any more."""
        self._busy -= 1

    def close(self) -> None:
        """All end, each when it has nothing to do: also one whose answer the loop does not live to hear."""
        self._size = 0
        self._idle.clear()
        for inbox in list(self._inboxes):
            inbox.put(None)

    def _grow(self, done: Callable[[Run, Any], None]) -> _Inbox:
        inbox: _Inbox = queue.SimpleQueue()
        self._inboxes.add(inbox)
        threading.Thread(
            target=self._work, args=(inbox, done), name=f"{self._name}-{next(self._numbers)}", daemon=True
        ).start()
        return inbox

    def _work(self, inbox: _Inbox, done: Callable[[Run, Any], None]) -> None:
        try:
            self._serve(inbox, done)
        finally:
            self._inboxes.discard(inbox)

    def _serve(self, inbox: _Inbox, done: Callable[[Run, Any], None]) -> None:
        while (work := inbox.get()) is not None:
            surroundings, run = work
            answer: Answer | Awaitable[object]
            try:
                answer = surroundings.run(self._body, run)
            except BaseException as error:
                answer = Raised(error)
            try:
                self._loop.call_soon_threadsafe(self._back, inbox, done, run, answer)
            except RuntimeError:
                return  # the loop is closed: nobody waits for this answer any more
            del work, surroundings, run, answer  # an idle thread keeps nothing alive

    def _back(self, inbox: _Inbox, done: Callable[[Run, Any], None], run: Run, answer: Any) -> None:
        if run.written_off:
            inbox.put(None)
        else:
            self._busy -= 1
            self._idle.append(inbox)
            self.keep(self._size)
        done(run, answer)


class ThreadRunner:
    """Runs sync handlers in threads, and awaits on the loop what one returns to be awaited."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str, awaiting: LoopRunner) -> None:
        self._loop = loop
        self._threads = Threads(loop, name, _call)
        self._awaiting = awaiting
        self.zombies = 0

    def start(self, run: Run) -> None:
        run.arm(self._loop)
        self._threads.start(run, self._done)

    def stop(self, run: Run, why: Stop) -> None:
        if why is not Stop.ASKED:
            self.zombies += 1
            run.written_off = True
            self._threads.forget()
            run.answer(NEVER)

    def keep(self, size: int) -> None:
        self._threads.keep(size)

    def close(self) -> None:
        self._threads.close()

    def _done(self, run: Run, answer: Answer | Awaitable[object]) -> None:
        if run.written_off:
            self.zombies -= 1
            if inspect.iscoroutine(answer):
                answer.close()
        elif isinstance(answer, Awaitable):
            self._awaiting.adopt(run, answer)
        else:
            run.answer(answer)


def _call(run: Run) -> Answer | Awaitable[object]:
    assert run.call is not None
    return sound(run.call.function(*run.call.args, **run.call.kwargs))


def sound(result: object) -> Answer | Awaitable[object]:
    """What a sync handler's result means: most are no matter, an awaitable is yet to be awaited, and a
    generator is a body that never ran."""
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        return Raised(TypeError("the handler returned a generator: its body has not run"))
    return result if isinstance(result, Awaitable) else RETURNED
