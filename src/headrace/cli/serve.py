"""Several pools in one process: they run together, stop together, and one that fails ends all."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from ..pool import Pool
from ..pool.health import Summary
from ..pool.signals import handled
from ..queue import Queue

LOOK = 0.05
"""Seconds between two looks at whether a burst is over."""


async def serve(pools: Mapping[str, Pool]) -> list[Summary]:
    """Run them until all have stopped. The error of the first that fails, once the others have stopped too."""
    tasks = [asyncio.create_task(pool.run_async(), name=name) for name, pool in pools.items()]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        if any(not task.done() for task in tasks):
            for pool in pools.values():
                pool.stop()
            await asyncio.wait(tasks)
    return [task.result() for task in tasks]


async def burst(pools: Mapping[str, Pool], queues: Mapping[str, Queue]) -> list[Summary]:
    """Run them until no job is ready and none runs; what is delayed stays."""
    task = asyncio.create_task(serve(pools))
    quiet = 0
    # One quiet look proves nothing while a pool may be taking jobs this very moment; two in a row do.
    while quiet < 2 and not task.done():
        await asyncio.wait([task], timeout=LOOK)
        idle = all(pool.health().running == 0 for pool in pools.values())
        stats = [await queue.as_async.stats() for queue in queues.values()]
        quiet = quiet + 1 if idle and all(each.ready == 0 or each.paused for each in stats) else 0
    for pool in pools.values():
        if not task.done():
            pool.stop()
    return await task


@contextmanager
def signalled(stop: Callable[[], None], drain: float) -> Iterator[list[int]]:
    """Within it SIGINT, SIGTERM and SIGHUP call ``stop``: the first to drain, the second to end at once. Gives
    the list of the signals that came. An ignored SIGHUP stays ignored: that is what nohup is for."""
    seen: list[int] = []

    def on_signal(name: str) -> None:
        seen.append(signal.Signals[name])
        if len(seen) == 1:
            _write(f"{name}: finishing what runs, for at most {drain:g} s; a second signal ends at once")
        elif len(seen) == 2:
            _write(f"{name} again: ending at once; what runs is given back")
        stop()

    def hang_up(_: int, __: FrameType | None) -> None:
        signal.raise_signal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGHUP)
    with handled(on_signal):
        if before is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, hang_up)
        try:
            yield seen
        finally:
            signal.signal(signal.SIGHUP, before)


def _write(text: str) -> None:
    """Past all buffers and locks: a signal may have come in the middle of somebody's print."""
    clear = "\r\x1b[2K" if sys.stderr.isatty() else ""
    os.write(2, f"{clear}headrace: {text}\n".encode())
