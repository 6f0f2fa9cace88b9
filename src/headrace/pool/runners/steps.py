"""A coroutine in context variables of its own, in a task that it need not have to itself.

Most of what a task costs is wasted on a handler that never waits. So a task takes such handlers one after the
other, and only the first that waits keeps it. From then on it is that handler's task like any other: the same one
in ``asyncio.current_task()`` before and after, the one that timeouts and task groups cancel.

Each coroutine is stepped by hand for that, as ``await`` would do it, because a task has one set of context
variables for life and every handler must have its own.
"""

from __future__ import annotations

import contextvars
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

from ..context import Context, enter

Started = tuple[Coroutine[Any, Any, object], object]
"""A coroutine that waits, and what for."""


def begin(context: Context, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The first step, inside the handler's own context variables; None when there is no second one."""
    enter(context)
    made = function(*args, **kwargs) if kwargs else function(*args)
    coroutine: Coroutine[Any, Any, object] = made if type(made) is types.CoroutineType else awaited(made)
    try:
        return coroutine, coroutine.send(None)
    except StopIteration:
        return None


@types.coroutine
def go_on(surroundings: contextvars.Context, started: Started) -> Generator[object, object, None]:
    """All further steps: what the coroutine waits for goes up to the task, what comes back goes down to it."""
    coroutine, waits_for = started
    while True:
        try:
            came = yield waits_for
        except BaseException as error:
            step: Callable[[Any], object] = coroutine.throw
            what: object = error
        else:
            step, what = coroutine.send, came
        try:
            waits_for = surroundings.run(step, what)
        except StopIteration:
            return


async def awaited(awaitable: Awaitable[object]) -> None:
    """Any awaitable, as a coroutine."""
    await awaitable
