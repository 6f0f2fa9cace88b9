"""From a URL to a queue: the only place that knows every backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, unquote_plus, urlsplit

from .errors import ConfigError
from .faces import SyncQueue
from .postgres.options import OPTIONS
from .queue import AsyncQueue, Queue
from .settings import Settings

if TYPE_CHECKING:
    from .postgres.admin import Admin

_OURS = {*Settings.__struct_fields__, *OPTIONS}
"""What may stand in a postgresql:// URL besides the driver's own parameters."""


def connect(url: str, **settings: Any) -> Queue:
    """A queue for sync callers: ``memory://``, ``sqlite:///jobs.db`` (relative), ``sqlite:////srv/jobs.db``,
    ``postgresql://user@host/database``.

    Settings (see :class:`headrace.settings.Settings`): queue, capacity, max_attempts, lease, overflow,
    dead_capacity, deadline_to_dead, max_payload, clock; SQLite adds synchronous, busy_timeout, poll and
    dead_keep; PostgreSQL schema, connections, patience, poll, migrate, direct, archive and dead_keep. What is not
    about the code may stand in the URL instead: ``sqlite:///jobs.db?synchronous=normal&lease=60``.

    Raises ConfigError for a URL or a setting that makes no sense, Unavailable when the store cannot be opened.
    """
    return _open(url, settings, at_once=True)


def connect_async(url: str, **settings: Any) -> AsyncQueue:
    """The same queue for asyncio. Opens nothing until it is first used; ``async with`` closes it."""
    return _open(url, settings, at_once=False).as_async


def _open(url: str, given: dict[str, Any], *, at_once: bool) -> SyncQueue:
    scheme, path, options = split_url(url)
    given = options | given
    if scheme == "postgresql":
        return _postgres(path, given, at_once)
    if scheme == "memory":
        from .memory.queue import memory_queue

        return memory_queue(Settings.make(**given))
    from .sqlite.queue import sqlite_queue

    return sqlite_queue(path, given, at_once=at_once)


def _postgres(url: str, given: dict[str, Any], at_once: bool) -> SyncQueue:
    with _driver():
        from .postgres.queue import postgres_queue
    return postgres_queue(url, given, at_once=at_once)


def admin(url: str) -> Admin:
    """For the operator of the tables that a postgresql:// URL leads to. Connects when it is used."""
    _, dsn, given = split_url(url)
    with _driver():
        from .postgres.admin import Admin
    return Admin(dsn, given)


@contextmanager
def _driver() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise ConfigError("url: postgresql:// needs a driver: pip install 'headrace[postgres]'") from None


def split_url(url: object) -> tuple[str, str, dict[str, Any]]:
    """(scheme, path, options). The error never repeats what might be a password."""
    if not isinstance(url, str):
        raise ConfigError(f"url: {type(url).__name__} is not a text like 'sqlite:///jobs.db'")
    scheme, mark, _ = url.partition("://")
    if scheme == "postgres":
        scheme, url = "postgresql", url.replace("postgres", "postgresql", 1)
    if not mark or scheme not in ("memory", "sqlite", "postgresql"):
        shown = f"{scheme}://…" if mark else "a text without ://"
        raise ConfigError(
            f"url: {shown} names no backend; use memory://, sqlite:///file.db or postgresql://user@host/database"
        )
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ConfigError(f"url: {scheme}://… cannot be read: {error}") from None
    options = {name: _value(value) for name, value in parse_qsl(parts.query, keep_blank_values=True)}
    if scheme == "postgresql":
        if parts.netloc.count("@") > 1 or "@" in parts.path:  # else a part of it passes for the host, which is shown
            raise ConfigError(
                "url: postgresql://… has an @ too many: what is special in a password has to be percent-encoded, "
                "@ as %40, / as %2F, ? as %3F"
            )
        ours = {name: value for name, value in options.items() if name in _OURS}
        return scheme, _without_ours(url), ours
    if scheme == "memory":
        if parts.netloc or parts.path.strip("/"):
            raise ConfigError("url: memory:// takes no host and no path: a memory queue has no name")
        return scheme, "", options
    if parts.netloc:
        # What stands there by mistake may be a user and a password.
        name = parts.netloc if not set(parts.netloc) & set(":@") else "jobs.db"
        raise ConfigError(
            f"url: sqlite:// has two slashes: write sqlite:///{name} for a file beside you, "
            "sqlite:////… for an absolute path"
        )
    path = unquote(parts.path[1:])
    if not path:
        raise ConfigError("url: sqlite:/// names no file; write sqlite:///jobs.db")
    return scheme, path, options


def _without_ours(url: str) -> str:
    """What is for the driver, letter by letter, for it reads some of them in its own way: + is no space to it, and
    where there is no host it takes the socket."""
    where, _, query = url.partition("?")
    theirs = [pair for pair in query.split("&") if unquote_plus(pair.partition("=")[0]) not in _OURS]
    return f"{where}?{'&'.join(theirs)}" if any(theirs) else where


def _value(text: str) -> Any:
    """An option from a URL: a whole number, a number, true, false, or a text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)
