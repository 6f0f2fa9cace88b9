"""Logs of a command, on stderr: plain lines where nobody watches, above the live line where somebody does."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .session import Session
from .terminal import safe

if TYPE_CHECKING:
    from rich.console import Console

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class Masked(logging.Formatter):
    """The last gate before a person reads it: drivers quote connection strings in their errors, and
    errors of handlers may hold anything, the control sequences of a terminal too."""

    def __init__(self, session: Session) -> None:
        super().__init__(FORMAT)
        self._session = session

    def format(self, record: logging.LogRecord) -> str:
        return safe(self._session.masked(super().format(record)))


class _Above(logging.Handler):
    """Prints above a live line instead of through it."""

    def __init__(self, screen: Console) -> None:
        super().__init__()
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        self._screen.print(self.format(record), markup=False, soft_wrap=True)


@contextmanager
def logging_to(session: Session, screen: Console | None = None) -> Iterator[None]:
    """Logs go to stderr, or to the console that draws the live line; DEBUG with ``--debug``.

    An app that has set up logging by itself knows better: nothing is changed then.
    """
    root = logging.getLogger()
    if root.handlers:
        yield
        return
    handler: logging.Handler = logging.StreamHandler() if screen is None else _Above(screen)
    handler.setFormatter(Masked(session))
    root.addHandler(handler)
    level = root.level
    root.setLevel(logging.DEBUG if session.debug else logging.INFO)
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
