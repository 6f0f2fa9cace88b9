"""Runs a coroutine on an event loop of its own, and gets rid of that loop even if some task will not end.

``asyncio.Runner`` waits for every task it cancels; one that swallows its cancellation would hold it for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE = 0.5
"""Seconds that left-over tasks may take to end."""


def drive(main: Coroutine[Any, Any, T]) -> T:
    """``asyncio.run``, but it always returns."""
    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)  # for libraries that still ask for it outside of tasks
        return loop.run_until_complete(main)
    finally:
        loop.run_until_complete(_clear())
        asyncio.set_event_loop(None)
        loop.close()


async def _clear() -> None:
    loop = asyncio.get_running_loop()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        _, stubborn = await asyncio.wait(left, timeout=PATIENCE)
        for task in stubborn:
            # It was written off, and reported as such: no news for the log. asyncio has no public switch.
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # not in the stubs
    closing = [
        loop.create_task(loop.shutdown_asyncgens()),
        loop.create_task(loop.shutdown_default_executor()),
    ]
    await asyncio.wait(closing, timeout=PATIENCE)
