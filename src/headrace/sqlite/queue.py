"""Opening an SQLite queue: its settings, and what the handles of one process share."""

from __future__ import annotations

import os
import sqlite3
import threading
from typing import Any
from weakref import WeakValueDictionary

from .. import check
from ..clock import SECOND
from ..errors import ConfigError
from ..faces import SyncQueue, faces
from ..ports import ExecutorPort
from ..settings import Settings
from ..waiting import Rooms
from .database import Database, file_key
from .step import SQL
from .store import SqliteStore

_SYNCHRONOUS = ("full", "normal")
_rooms: WeakValueDictionary[tuple[str, str], Rooms] = WeakValueDictionary()
_rooms_lock = threading.Lock()


def _after_fork() -> None:
    global _rooms_lock
    _rooms_lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def sqlite_queue(path: str, given: dict[str, Any], *, at_once: bool) -> SyncQueue:
    """A handle; ``at_once`` opens the file now, else the first call does.

    ``synchronous``: "full" (a power cut loses nothing that was accepted; the default) or "normal" (a power
    cut may lose the last moments, a killed process nothing). ``busy_timeout``: seconds to wait for another
    process's lock. ``poll``: seconds between two looks for what other processes wrote. ``dead_keep``:
    seconds after which a dead letter is thrown away, and counted as dropped; 0 or None: they stay."""
    given = dict(given)
    synchronous = str(given.pop("synchronous", "full")).lower()
    if synchronous not in _SYNCHRONOUS:
        raise ConfigError(f"synchronous: {synchronous!r} is none of {', '.join(_SYNCHRONOUS)}")
    patience = check.duration("busy_timeout", given.pop("busy_timeout", 15.0)) / SECOND
    poll = check.duration("poll", given.pop("poll", 0.04), zero=False) / SECOND
    dead_keep = check.duration("dead_keep", given.pop("dead_keep", None) or 0)
    settings = Settings.make(also=("synchronous", "busy_timeout", "poll", "dead_keep"), **given)
    with _rooms_lock:
        rooms = _rooms.setdefault((file_key(path), settings.queue), Rooms())
    store = SqliteStore(settings, Database(path, synchronous, patience), rooms, poll, dead_keep)
    if at_once:
        store.open()
    return faces(store, ExecutorPort("headrace-sqlite"))


def queue_names(path: str) -> list[str]:
    """The queues in a file, by name; none for a file that holds no queue. Changes nothing in it."""
    database = Database(path, "full", 15.0, read_only=True)

    def work(connection: sqlite3.Connection) -> list[str]:
        known = "SELECT count(*) FROM sqlite_schema WHERE name = 'headrace_queues'"
        if connection.execute(known).fetchone()[0] == 0:
            return []
        return [row[0] for row in connection.execute(SQL["queue_names"])]

    try:
        return database.read(work)
    finally:
        database.close()
