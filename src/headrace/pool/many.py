"""Several pools in one process: they run together, stop together, and one that fails ends all.

A queue's jobs start in order, so slow jobs at its head hold up the quick ones behind them. Pools are the answer: one
queue and one pool for each kind of work, and none can take the workers of another.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from ..errors import ConfigError
from . import signals
from .driver import drive
from .health import Summary
from .pool import Pool

log = logging.getLogger("headrace.pool")


def run_pools(pools: Iterable[Pool]) -> list[Summary]:
    """Run pools until all have stopped; blocks. In the main thread the signals are those of ``Pool.run``, for all of
    them, and SIGTTIN and SIGTTOU make each one worker larger or smaller. Returns their summaries, in order; raises
    PoolFailed when one of them cannot work any more, once the others have stopped too."""
    listed = _checked(pools)

    def stop(name: str) -> None:
        log.warning("%s: taking no more jobs, waiting for those that run; once more to end at once", name)
        for pool in listed:
            pool.stop()

    def grow(by: int) -> None:
        for pool in listed:
            pool.grow(by)

    with signals.handled(stop), signals.resizing(grow):
        return drive(run_pools_async(listed))


async def run_pools_async(pools: Iterable[Pool]) -> list[Summary]:
    """The same on the caller's event loop; signals are the caller's business. When it is cancelled, all stop."""
    listed = _checked(pools)
    tasks = [asyncio.create_task(pool.run_async()) for pool in listed]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        if any(not task.done() for task in tasks):
            for pool in listed:
                pool.stop()
            await asyncio.wait(tasks)
    return [task.result() for task in tasks]


def _checked(pools: Iterable[Pool]) -> list[Pool]:
    listed = list(pools)
    if not listed:
        raise ConfigError("pools: there are none to run; give at least one")
    return listed
