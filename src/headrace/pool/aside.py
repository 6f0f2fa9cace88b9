"""One blocking call beside the event loop, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from .call import name_of

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """What the function returns or raises. The thread is a daemon, because a hung one must not keep the process from
    ending; and it is waited for even when cancelled, because it cannot be: so the pool knows that it still runs, and
    writes it off in time."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    answers: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(surroundings.run(function, *args, **kwargs))
        except BaseException as error:
            errors.append(error)
        try:
            loop.call_soon_threadsafe(ended.set)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more

    surroundings = contextvars.copy_context()
    threading.Thread(target=work, name=f"headrace {name_of(function)}", daemon=True).start()
    cancelled: asyncio.CancelledError | None = None
    while not ended.is_set():
        try:
            await ended.wait()
        except asyncio.CancelledError as error:
            cancelled = error
    if errors:
        raise errors[0]
    if cancelled is not None:
        if inspect.iscoroutine(answers[0]):
            answers[0].close()  # or it would be said of it that nobody awaited it
        raise cancelled
    return answers[0]
