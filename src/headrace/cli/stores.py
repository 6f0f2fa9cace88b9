"""From the session to open queues and apps, with the mistakes people make met early."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from ..connect import admin, connect
from ..errors import ConfigError, Unavailable
from ..masking import mask_url
from ..queue import Queue
from .failure import Failure
from .session import Session

if TYPE_CHECKING:
    from ..app import App
    from ..postgres.admin import Admin


@contextmanager
def opened(session: Session, name: str | None) -> Iterator[Queue]:
    """The queue of that name, closed in the end; without a name the only one there is, else ``default``. Nothing is
    made by looking: a misspelt file is an error, and so is a misspelt queue."""
    names, where = queue_names(session), place(session.url)
    if name is None:
        name = names[0] if len(names) == 1 else "default"
    if where is not None and name not in names:
        raise Failure(f"queue {name!r} is not in {where}; there is {', '.join(names)}")
    with connect(session.url, queue=name, **as_it_is(where)) as queue:
        refuse_private(session, queue)
        yield queue


def queue_names(session: Session) -> list[str]:
    """All queues that the store holds, sorted; ``default`` where it cannot tell. Unavailable without a store,
    Failure where it holds none: it may be that of another program."""
    where = place(session.url)
    if where is None:
        return ["default"]
    if isinstance(where, Path) and not where.exists():
        raise Unavailable(f"{where}: no such file; the first enqueue or worker makes it, or is the URL misspelt?")
    if names := names_in(where):
        return names
    if isinstance(where, Path):
        raise Failure(f"{where} holds no queues; is it the right file?")
    raise Failure(f"{where} holds no queues; the first enqueue or worker makes them, or is the URL misspelt?")


def names_in(where: Path | Admin | None) -> list[str]:
    """The queues that are there, sorted; none where nothing is, or where nobody can tell."""
    if where is None:
        return []
    if not isinstance(where, Path):
        return sorted(where.queue_names())
    from ..sqlite.queue import queue_names

    return sorted(queue_names(str(where))) if where.exists() else []


def is_new(url: str, name: str) -> bool:
    """Is there no queue of that name yet, as far as this can be told?"""
    return name not in names_in(place(url))


def place(url: str) -> Path | Admin | None:
    """What can be looked at before a queue is opened: a file of SQLite, a schema of PostgreSQL; None for others."""
    return postgres(url) or sqlite_path(url)


def postgres(url: str) -> Admin | None:
    """None for other URLs. ConfigError for a wrong one."""
    if not url.startswith(("postgresql://", "postgres://")):
        return None
    return admin(url)


def schema_in(url: str, schema: str) -> str:
    """The URL with that schema in it."""
    bare, _, query = url.partition("?")
    rest = [pair for pair in query.split("&") if pair and pair.partition("=")[0] != "schema"]
    return f"{bare}?{'&'.join([*rest, f'schema={schema}'])}"


def as_it_is(where: Path | Admin | None) -> dict[str, bool]:
    """The settings with which a look at a queue upgrades nothing."""
    return {"migrate": False} if where is not None and not isinstance(where, Path) else {}


def refuse_private(session: Session, queue: Queue) -> None:
    """ConfigError for a queue that ends with this process: whatever this command did there would come to nothing."""
    if not queue.capabilities.processes:
        raise ConfigError(f"url: {session.shown_url} lives within one process; nothing of it is seen from here")


def warn_if_private(session: Session, queues: Iterable[Queue]) -> None:
    """The same, where it may be meant."""
    if private := [queue.settings.queue for queue in queues if not queue.capabilities.processes]:
        session.warn(f"in memory, within this process alone: {', '.join(private)}; what others enqueue never comes "
                     "here, and what waits is lost at the end")  # fmt: skip


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
    ignored = os.environ.get("HEADRACE_URL")
    if session.given_url and app.url != session.given_url:
        raise ConfigError(f"{path} names its own URL, so --url cannot; write App() there and let --url decide")
    session.given_url = app.url
    if ignored and app.url != ignored:
        session.warn(f"{path} names its own URL, {session.shown_url}, so HEADRACE_URL ({mask_url(ignored)}) does not "
                     "count; write App() there and let HEADRACE_URL decide")  # fmt: skip
    return app
