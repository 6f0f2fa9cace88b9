"""What the doctor wants to know of a server and of the queues in one schema."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from ..job import Stats
from ..rules import TOTALS
from .connections import Connection


class Server(NamedTuple):
    """In the order of ``doctor_server.sql``."""

    version: int
    now: int
    """Microseconds since 1970."""
    read_only: bool
    autovacuum: bool
    fsync: bool
    synchronous_commit: str
    idle_in_transaction: int
    """Milliseconds until a session that idles in a transaction is ended; 0: never."""
    max_connections: int
    """For those who are no superuser."""
    connections: int
    sees_all: bool
    """May look into the sessions of others."""


class Holder(NamedTuple):
    """Somebody who keeps vacuum from removing dead rows, in the order of ``doctor_horizon.sql``."""

    kind: str
    name: str
    application: str
    user: str
    state: str
    age: float
    """Seconds; of a slot, transactions."""


class Table(NamedTuple):
    """In the order of ``doctor_tables.sql``."""

    name: str
    live: int
    dead: int
    analysed: bool
    size: int
    options: list[str] | None


class Queue(NamedTuple):
    name: str
    stats: Stats
    counted: tuple[int, int, int, int]
    """Rows that are ready, delayed, in flight and dead."""
    oldest_dead: float | None
    """Seconds since the death of the first of them."""
    deltas: int
    overdue: float
    """Seconds since something fell due that nobody moved."""
    payload_p99: int
    payload_max: int


class Figures(NamedTuple):
    schema: str
    database: str
    server: Server
    skew: float
    """Seconds by which the server's clock is ahead of this machine's."""
    pooler: bool
    """Sessions are shared between clients."""
    direct: bool
    """There is a way round the pooler."""
    holders: list[Holder]
    tables: list[Table]
    queues: list[Queue]


def look(connection: Connection, sql: dict[str, bytes], schema: str, direct: bool) -> Figures:
    """All of it in one snapshot, however long that takes."""
    pooler = connection.prepare_threshold is None
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        connection.execute("SET LOCAL statement_timeout = 0")
        began = time.time()
        server = Server(*_rows(connection, sql["doctor_server"])[0])
        skew = server.now / 1e6 - (began + time.time()) / 2
        holders = [Holder(*row) for row in _rows(connection, sql["doctor_horizon"])]
        tables = [Table(*row) for row in _rows(connection, sql["doctor_tables"], schema=schema)]
        queues = [_queue(connection, sql, row[0]) for row in _rows(connection, sql["queue_names"])]
    return Figures(schema, connection.info.dbname, server, skew, pooler, direct, holders, tables, queues)


def _rows(connection: Connection, query: bytes, **given: object) -> list[Any]:
    return connection.execute(query, given).fetchall()


def _queue(connection: Connection, sql: dict[str, bytes], name: str) -> Queue:
    number = _rows(connection, sql["queue_find"], name=name)[0][0]
    now, oldest, paused, ready, delayed, inflight, dead, *totals = _rows(
        connection, sql["stats"], queue=number, now=None
    )[0]
    stats = Stats(
        ready=ready, delayed=delayed, inflight=inflight, dead=dead, paused=paused,
        oldest_ready=0.0 if oldest is None else (now - oldest) / 1e6, **dict(zip(TOTALS, totals, strict=True)),
    )  # fmt: skip
    *counted, died, deltas, due, p99, largest = _rows(connection, sql["doctor_queue"], queue=number)[0]
    return Queue(
        name,
        stats,
        tuple(counted),
        None if died is None else (now - died) / 1e6,
        deltas,
        0.0 if due is None else max(0.0, (now - due) / 1e6),
        p99 or 0,
        largest or 0,
    )
