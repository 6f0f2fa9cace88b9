"""What a worker is doing, as one live line at the bottom of a terminal."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..pool.events import Event, Finished, Started
from .logs import logging_to
from .session import Session
from .terminal import console, line, span

if TYPE_CHECKING:
    from rich.text import Text


class Tally:
    """Counts what pools tell. Rich draws it from its own thread; it only ever reads numbers."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.running = 0
        self.latest = ""
        self._since = time.monotonic()

    def on(self, event: Event) -> None:
        if isinstance(event, Started):
            self.running += 1
            self.latest = event.name
        elif isinstance(event, Finished):
            # A job that was given back or buried before it was begun was never counted as running.
            self.running = max(0, self.running - 1)
            self.counts[event.verdict] += 1

    def text(self) -> str:
        """``3 running, 120 acked, 2 nacked in 1 min 5 s; latest shop:mail``."""
        counts = [f"{count:,} {verdict}" for verdict, count in sorted(self.counts.items())]
        latest = f"; latest {line(self.latest, 40)}" if self.latest else ""
        return f"{', '.join([f'{self.running} running', *counts])} in {span(time.monotonic() - self._since)}{latest}"

    def __rich__(self) -> Text:
        from rich.text import Text

        return Text(self.text(), no_wrap=True, overflow="ellipsis")


@contextmanager
def shown(session: Session, tally: Tally) -> Iterator[None]:
    """Within it logs appear, and below them the live line where stderr is a terminal. Whatever else is printed
    meanwhile would be written into that line."""
    if not sys.stderr.isatty():
        with logging_to(session):
            yield
        return
    from rich.live import Live

    screen = console(err=True)
    with logging_to(session, screen), Live(tally, console=screen, transient=True, refresh_per_second=4):
        yield
