"""Opening a PostgreSQL queue: its settings, and what the handles of one process share."""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakValueDictionary

from ..faces import SyncQueue, faces
from ..ports import ExecutorPort
from ..waiting import Rooms
from .connected import is_own
from .connections import stock
from .options import Options
from .store import PostgresStore

_rooms: WeakValueDictionary[tuple[str, str, str], Rooms] = WeakValueDictionary()
_rooms_lock = threading.Lock()


def postgres_queue(dsn: str, given: dict[str, Any], *, at_once: bool) -> SyncQueue:
    """A handle; ``at_once`` connects now, else the first call does. See :class:`.options.Options`, whose durations are
    given in seconds."""
    options, settings = Options.make(given)
    shared = stock(dsn, options.connections, options.patience)
    with _rooms_lock:
        rooms = _rooms.setdefault((shared.dsn, options.schema, settings.queue), Rooms())
    store = PostgresStore(settings, shared, options, rooms, own_clock=is_own(given.get("clock")))
    if at_once:
        store.open()
    return faces(store, ExecutorPort("headrace-postgres", threads=4))
