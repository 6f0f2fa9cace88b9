"""A connection in a transaction that the caller began, whatever library it comes from.

One statement, ``%(name)s`` in it and its values by name; back come its rows as tuples. Where the library blocks, so
does this: such a coroutine never suspends, and ``ports.run`` takes it to its end. What a connection is, is told by the
module of its class, so no library is imported that the caller has not imported already.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol

import psycopg
from psycopg.rows import tuple_row

from ..errors import ConfigError

Rows = list[tuple[Any, ...]]
Values = Mapping[str, object]

_TAKES = (
    "a connection or a session of psycopg, asyncpg or SQLAlchemy, or Django's connection, in a transaction on the "
    "queue's own database"
)


class Driver(Protocol):
    awaited: bool
    """Its library is asynchronous."""

    async def rows(self, query: str, values: Values) -> Rows:
        """ConfigError where no transaction is under way and none would begin: it would be committed at once."""


def driver(connection: Any) -> Driver:
    """ConfigError for what is no connection to PostgreSQL that we know."""
    modules = {kind.__module__ for kind in type(connection).__mro__}
    roots = {module.partition(".")[0] for module in modules}
    if isinstance(connection, psycopg.Connection):
        return _Psycopg(connection)
    if isinstance(connection, psycopg.AsyncConnection):
        return _AsyncPsycopg(connection)
    if "asyncpg" in roots and hasattr(connection, "is_in_transaction"):
        return _Asyncpg(connection)
    if "sqlalchemy" in roots and (hasattr(connection, "exec_driver_sql") or hasattr(connection, "connection")):
        if any(module.startswith("sqlalchemy.ext.asyncio") for module in modules):
            return _AsyncAlchemy(connection)
        return _Alchemy(connection)
    if "django" in roots and hasattr(connection, "vendor"):
        return _Django(connection)
    raise ConfigError(
        f"within: takes {_TAKES}, not {type(connection).__name__}; what opens connections or sessions is none itself: "
        "with engine.begin() as connection, with sessionmaker.begin() as session, with pool.connection() as connection"
    )


def refusal(error: BaseException) -> tuple[str, str]:
    """What the server says where it refuses a statement, whatever library wraps it: its code and its words. Empty
    where the error is not the server's."""
    cause: Any = error
    while cause is not None:
        if code := getattr(cause, "sqlstate", None):
            return str(code), str(cause).partition("\n")[0]
        cause = cause.__cause__
    return "", ""


class _Psycopg:
    awaited = False

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    async def rows(self, query: str, values: Values) -> Rows:
        _refuse_autocommit(_at_once(self._connection))
        with psycopg.Cursor(self._connection, row_factory=tuple_row) as cursor:
            return cursor.execute(query.encode(), values, binary=True).fetchall()


class _AsyncPsycopg:
    awaited = True

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection

    async def rows(self, query: str, values: Values) -> Rows:
        _refuse_autocommit(_at_once(self._connection))
        async with psycopg.AsyncCursor(self._connection, row_factory=tuple_row) as cursor:
            await cursor.execute(query.encode(), values, binary=True)
            return await cursor.fetchall()


class _Asyncpg:
    awaited = True

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def rows(self, query: str, values: Values) -> Rows:
        _refuse_autocommit(not self._connection.is_in_transaction())
        text, names = numbered(query)
        return [tuple(row) for row in await self._connection.fetch(text, *[values[name] for name in names])]


class _Alchemy:
    """By SQLAlchemy's own execute, never past it: what goes to the driver's connection before SQLAlchemy has begun
    its transaction is committed, whatever becomes of that."""

    awaited = False

    def __init__(self, bind: Any) -> None:
        self._bind = bind

    async def rows(self, query: str, values: Values) -> Rows:
        bind = self._bind
        connection = bind if hasattr(bind, "exec_driver_sql") else bind.connection()
        return _tuples(connection.exec_driver_sql(*_spoken(connection, query, values)))


class _AsyncAlchemy:
    awaited = True

    def __init__(self, bind: Any) -> None:
        self._bind = bind

    async def rows(self, query: str, values: Values) -> Rows:
        bind = self._bind
        connection = bind if hasattr(bind, "exec_driver_sql") else await bind.connection()
        return _tuples(await connection.exec_driver_sql(*_spoken(connection.sync_connection, query, values)))


class _Django:
    awaited = False

    def __init__(self, connection: Any) -> None:
        if connection.vendor != "postgresql":
            raise ConfigError(f"within: takes {_TAKES}; this one leads to {connection.vendor}")
        self._connection = connection

    async def rows(self, query: str, values: Values) -> Rows:
        _refuse_autocommit(self._connection.get_autocommit())
        with self._connection.cursor() as cursor:
            cursor.execute(query, values)
            rows: Rows = cursor.fetchall()
            return rows


@cache
def numbered(query: str) -> tuple[str, tuple[str, ...]]:
    """With ``$1`` for ``%(name)s``, and the names in that order."""
    names = tuple(dict.fromkeys(re.findall(r"%\((\w+)\)s", query)))
    return re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", query), names


def _spoken(connection: Any, query: str, values: Values) -> tuple[str, Any]:
    """As the driver under SQLAlchemy wants to hear it."""
    dialect = connection.dialect
    if (dialect.name, dialect.driver) not in (("postgresql", "psycopg"), ("postgresql", "asyncpg")):
        raise ConfigError(f"within: takes {_TAKES}, by psycopg or asyncpg; not {dialect.name}+{dialect.driver}")
    _refuse_autocommit(connection.connection.dbapi_connection.autocommit)
    if dialect.driver == "psycopg":
        return query, values
    text, names = numbered(query)
    return text, tuple([values[name] for name in names])


def _tuples(result: Any) -> Rows:
    return [tuple(row) for row in result.fetchall()]


def _at_once(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    return connection.autocommit and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def _refuse_autocommit(committing: bool) -> None:
    if committing:
        raise ConfigError(
            "within: no transaction is under way on this connection, so each call would be committed at once: "
            "begin one first (connection.transaction(), atomic(), …)"
        )
