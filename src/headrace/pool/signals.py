"""SIGTERM and SIGINT while a pool runs: the first drains, the second ends at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

PATIENCE = 1.8
"""Seconds after the second signal in which the pool may still give its jobs back."""


@contextmanager
def handled(stop: Callable[[str], None]) -> Iterator[None]:
    """Call ``stop(name)`` at each signal. Outside the main thread this does nothing: the program that owns
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
    before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for limit in over:
            limit.cancel()
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
