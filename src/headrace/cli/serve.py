"""How a worker ends: by its signals, or when a burst is over."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ..pool import Pool, run_pools_async
from ..pool.health import Summary
from ..pool.signals import ENDING, handled, resizing
from ..queue import Queue

LOOK = 0.05
"""Seconds between two looks at whether a burst is over."""


async def burst(pools: Sequence[Pool], queues: Sequence[Queue]) -> list[Summary]:
    """Run them until no job is ready and none runs; what is delayed stays."""
    task = asyncio.create_task(run_pools_async(pools))
    quiet = 0
    # One quiet look proves nothing while a pool may be taking jobs this very moment; two in a row do.
    while quiet < 2 and not task.done():
        await asyncio.wait([task], timeout=LOOK)
        idle = all(pool.health().running == 0 for pool in pools)
        stats = [await queue.as_async.stats() for queue in queues]
        quiet = quiet + 1 if idle and all(each.ready == 0 or each.paused for each in stats) else 0
    for pool in pools:
        if not task.done():
            pool.stop()
    return await task


def left(queues: Sequence[Queue]) -> str:
    """What a burst did not do, in words; nothing where nothing is left."""
    found = []
    for queue in queues:
        stats, name = queue.stats(), repr(queue.settings.queue)
        if stats.ready:
            found.append(f"{stats.ready:,} ready in {name}{', which is paused' if stats.paused else ''}")
        if stats.delayed:
            found.append(f"{stats.delayed:,} delayed in {name}")
        if stats.inflight:
            found.append(f"{stats.inflight:,} of {name} held elsewhere")
    return "; ".join(found)


@contextmanager
def signalled(stop: Callable[[], None], grow: Callable[[int], None], drain: float) -> Iterator[list[int]]:
    """Within it SIGINT, SIGTERM and SIGHUP call ``stop``: the first to drain, the second to end at once. SIGTTIN and
    SIGTTOU call ``grow``. Gives the list of the signals to end. An ignored SIGHUP stays ignored: that is what nohup
    is for."""
    seen: list[int] = []

    def on_signal(name: str) -> None:
        seen.append(signal.Signals[name])
        if len(seen) == 1:
            _write(f"{name}: finishing what runs, for at most {drain:g} s; a second signal ends at once")
        elif len(seen) == 2:
            _write(f"{name} again: ending at once; what runs is given back")
        stop()

    def on_resize(by: int) -> None:
        _write("SIGTTIN: one worker more in each pool" if by > 0 else "SIGTTOU: one worker fewer in each pool")
        grow(by)

    hang_up = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    with handled(on_signal, (*ENDING, *hang_up)), resizing(on_resize):
        yield seen


def _write(text: str) -> None:
    """Past all buffers and locks: a signal may have come in the middle of somebody's print."""
    clear = "\r\x1b[2K" if sys.stderr.isatty() else ""
    os.write(2, f"{clear}headrace: {text}\n".encode())
