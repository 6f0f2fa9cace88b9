"""Signals while pools run: the first SIGTERM or SIGINT drains, the second ends at once; SIGTTIN and SIGTTOU make
pools larger and smaller."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

PATIENCE = 1.8
"""Seconds after the second signal in which the pool may still give its jobs back."""


ENDING = (signal.SIGTERM, signal.SIGINT)

_GROW = {signal.SIGTTIN: 1, signal.SIGTTOU: -1}


@contextmanager
def resizing(grow: Callable[[int], None]) -> Iterator[None]:
    """Call ``grow(1)`` at SIGTTIN and ``grow(-1)`` at SIGTTOU, as other servers take them. Outside the main thread
    this does nothing.

    The kernel sends the same signals to a job in a terminal's background that reads or writes there, again and
    again until it stops doing so. There they are ignored from then on, and mean nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(number: int, _: FrameType | None) -> None:
        if _in_background():
            signal.signal(number, signal.SIG_IGN)
        else:
            grow(_GROW[signal.Signals(number)])

    before = {number: signal.signal(number, on_signal) for number in _GROW}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _in_background() -> bool:
    """Whether somebody else has the terminal that this process reads from or writes to."""
    for descriptor in (0, 1, 2):
        try:
            if os.tcgetpgrp(descriptor) != os.getpgrp():
                return True
        except OSError:
            continue  # no terminal, or not ours
    return False


@contextmanager
def handled(stop: Callable[[str], None], numbers: Iterable[int] = ENDING) -> Iterator[None]:
    """Call ``stop(name)`` at each of these signals. Outside the main thread this does nothing: the program that owns
    the signals calls ``stop`` itself.

    Plain ``signal.signal``, not the loop's own handlers: these would wait until a handler that blocks the loop
    lets go of it. For the same reason the second signal sets a limit after which the process ends, come what
    may; jobs that could not be given back by then return when their leases are over.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen = 0

    def on_signal(number: int, _: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen == 2:
            limit = threading.Timer(PATIENCE, os._exit, (128 + number,))
            limit.daemon = True
            limit.start()
            over.append(limit)
        stop(signal.Signals(number).name)

    over: list[threading.Timer] = []
    before = {number: signal.signal(number, on_signal) for number in numbers}
    try:
        yield
    finally:
        for limit in over:
            limit.cancel()
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
