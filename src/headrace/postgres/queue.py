"""Opening a PostgreSQL queue: its settings, and what the handles of one process share."""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakValueDictionary

import psycopg
from psycopg.conninfo import conninfo_to_dict

from .. import check
from ..clock import SECOND
from ..errors import ConfigError
from ..faces import SyncQueue, faces
from ..ports import ExecutorPort
from ..settings import Settings
from ..waiting import Rooms
from .connected import is_own
from .connections import stock
from .options import OPTIONS
from .store import PostgresStore

_rooms: WeakValueDictionary[tuple[str, str, str], Rooms] = WeakValueDictionary()
_rooms_lock = threading.Lock()


def postgres_queue(dsn: str, given: dict[str, Any], *, at_once: bool) -> SyncQueue:
    """A handle; ``at_once`` connects now, else the first call does.

    ``schema``: where the tables are (default "headrace"). ``connections``: how many this process opens at most.
    ``patience``: seconds for which a step waits out a server that is away. ``poll``: seconds between two looks for
    what nobody told us of. ``migrate``: make and upgrade the tables when they are first needed. ``direct``: the
    server's own address, for being woken, where the URL leads to a pooler that shares sessions. ``archive``: seconds
    for which done jobs are kept in the table of that name. ``dead_keep``: seconds after which a dead letter is thrown
    away, and counted as dropped. 0 or None: no archive, and dead letters stay."""
    given = dict(given)
    schema = check.identifier("schema", given.pop("schema", "headrace")).lower()
    size = check.whole("connections", given.pop("connections", 8), 1, 1_000)
    patience = check.duration("patience", given.pop("patience", 15.0)) / SECOND
    poll = check.duration("poll", given.pop("poll", 1.0), zero=False) / SECOND
    make = check.flag("migrate", given.pop("migrate", True))
    direct = _address("direct", given.pop("direct", None))
    archive = check.duration("archive", given.pop("archive", None) or 0)
    dead_keep = check.duration("dead_keep", given.pop("dead_keep", None) or 0)
    settings = Settings.make(also=OPTIONS, **given)
    shared = stock(dsn, size, patience)
    with _rooms_lock:
        rooms = _rooms.setdefault((shared.dsn, schema, settings.queue), Rooms())
    own_clock = is_own(given.get("clock"))
    store = PostgresStore(settings, shared, schema, rooms, poll, own_clock=own_clock, make=make, direct=direct,
                          archive=archive, dead_keep=dead_keep)  # fmt: skip
    if at_once:
        store.open()
    return faces(store, ExecutorPort("headrace-postgres", threads=4))


def _address(name: str, value: object) -> str | None:
    """ConfigError for what the driver cannot read, without its text: it repeats what may be a password."""
    try:
        if value is None or (isinstance(value, str) and conninfo_to_dict(value)):
            return value
    except psycopg.ProgrammingError:
        pass
    raise ConfigError(f"{name}: not an address like postgresql://user@host:5432/database")
