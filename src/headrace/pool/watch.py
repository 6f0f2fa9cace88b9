"""Notices when a handler blocks the event loop, and says which.

In real time whatever the queue's clock: blocking is a matter of this process, not of the queue.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

from ..clock import SECOND, Clock, SystemClock

log = logging.getLogger(__name__)

TOO_LONG = 1.0
"""Seconds without an answer from the loop that are worth a warning."""
_INTERVAL = SECOND // 2


class LoopWatch:
    """A thread that asks the loop for a sign of life twice a second. ``busy()`` names who has the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, busy: Callable[[], str], clock: Clock | None = None) -> None:
        self._loop = loop
        self._busy = busy
        self._clock = clock or SystemClock()
        self._asked: int | None = None
        self._warned = False
        self._stopped = False
        self._bell = threading.Lock()
        self._bell.acquire()
        self._thread = threading.Thread(target=self._work, name="headrace-loop-watch", daemon=True)

    @property
    def lag(self) -> float:
        """For how many seconds the loop has owed an answer; 0.0 when it is well."""
        asked = self._asked
        late = 0.0 if asked is None else (self._clock.steady() - asked) / SECOND
        return late if late >= TOO_LONG else 0.0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        self._bell.release()
        self._thread.join(1.0)

    def _work(self) -> None:
        while not self._clock.acquire(self._bell, self._clock.steady() + _INTERVAL) and not self._stopped:
            if self._asked is None:
                self._asked = self._clock.steady()
                try:
                    self._loop.call_soon_threadsafe(self._answer)
                except RuntimeError:
                    return  # the loop is closed
            elif self.lag and not self._warned:
                self._warned = True
                log.warning(
                    "the event loop has been blocked for %.1f s by %s; a handler that does not await belongs "
                    "into a thread: write it as a plain def",
                    self.lag,
                    self._busy(),
                )

    def _answer(self) -> None:
        late, self._asked = self.lag, None
        if self._warned:
            self._warned = False
            log.warning("the event loop goes on after having been blocked for %.1f s", late)
