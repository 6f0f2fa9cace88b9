"""From the session to open queues and apps, with the mistakes people make met early."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from ..connect import connect
from ..errors import ConfigError, Unavailable
from ..queue import Queue
from .failure import Failure
from .session import Session

if TYPE_CHECKING:
    from ..app import App


@contextmanager
def opened(session: Session, name: str, *, new: bool = False) -> Iterator[Queue]:
    """The queue of that name, closed in the end. Nothing is made by looking: a misspelt file is an error, and so
    is a misspelt queue unless it may be ``new``."""
    path = sqlite_path(session.url)
    if path is not None and name not in (names := queue_names(session)) and not new:
        raise Failure(f"queue {name!r} is not in {path}; there is {', '.join(names) or 'none'}")
    with connect(session.url, queue=name) as queue:
        if not queue.capabilities.processes:
            raise ConfigError(f"url: {session.shown_url} lives within one process; nothing of it is seen from here")
        yield queue


def queue_names(session: Session) -> list[str]:
    """All queues that the store holds, sorted; ``default`` where it cannot tell. Unavailable without a store."""
    path = sqlite_path(session.url)
    if path is None:
        return ["default"]
    if not path.exists():
        raise Unavailable(f"{path}: no such file; the first enqueue or worker makes it, or is the URL misspelt?")
    from ..sqlite.queue import queue_names as names_in

    return sorted(names_in(str(path)))


def sqlite_path(url: str) -> Path | None:
    """The absolute path of the file in a URL of SQLite; None for other URLs and for wrong ones."""
    if not url.startswith("sqlite:///"):
        return None
    path = unquote(urlsplit(url).path[1:])
    return Path(path).absolute() if path else None


def loaded(session: Session, path: str) -> App:
    """The app that ``module:app`` names, on the session's URL."""
    from ..loading import load_app

    if session.given_url:
        # The environment, and no argument, because a task's own process imports the app anew.
        os.environ["HEADRACE_URL"] = session.given_url
    app = load_app(path)
    if session.given_url and app.url != session.given_url:
        raise ConfigError(f"{path} names its own URL, so --url cannot; write App() there and let --url decide")
    session.given_url = app.url
    return app
