"""How many jobs this process believes to be ready: enough to know whether waking the next waiter is worth it.

Many threads take and put at once, and a look that found nothing may come to its end after a job came in. It must
not say so then, for nobody would be woken: so a look only counts when nothing has come since it began.
"""

from __future__ import annotations

import threading


class Ready:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._came = 0
        self.count = 0

    def begin(self) -> int:
        """Before a look; to be handed to what says how it ended."""
        return self._came

    def came(self, count: int) -> None:
        """So many became ready."""
        if count:
            with self._lock:
                self._came += 1
                self.count += count

    def left(self, began: int, taken: int, *, more: bool) -> None:
        """A look found ``taken``; ``more``: there may be more of them."""
        with self._lock:
            if more:
                self.count = max(1, self.count - taken)
            elif self._came == began:
                self.count = 0

    def counted(self, began: int, count: int) -> None:
        """A look counted them."""
        with self._lock:
            if count or self._came == began:
                self.count = count
