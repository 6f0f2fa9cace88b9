"""Every library in whose transactions jobs may be enqueued, as one table of cases: each opens a transaction on a
database, writes a row of its own beside what the queue does, and commits or rolls back as that library does."""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import asyncpg
import django
import psycopg
import sqlalchemy as sa
from django.conf import settings
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

Opened: TypeAlias = tuple[Any, Callable[[str], Any]]
"""The connection, and how to carry out a statement of one's own in its transaction."""
Library: TypeAlias = Callable[[str], AbstractAsyncContextManager[Opened]]
"""A transaction: committed at the end, rolled back by an exception."""


async def settled(result: Any) -> Any:
    """What a call returned, awaited where it has to be."""
    return await result if inspect.isawaitable(result) else result


@asynccontextmanager
async def psycopg_sync(dsn: str) -> AsyncIterator[Opened]:
    with psycopg.connect(dsn) as connection:
        yield connection, lambda text: connection.execute(text.encode())


@asynccontextmanager
async def psycopg_autocommit(dsn: str) -> AsyncIterator[Opened]:
    with psycopg.connect(dsn, autocommit=True) as connection, connection.transaction():
        yield connection, lambda text: connection.execute(text.encode())


@asynccontextmanager
async def psycopg_async(dsn: str) -> AsyncIterator[Opened]:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        yield connection, lambda text: connection.execute(text.encode())


@asynccontextmanager
async def asyncpg_plain(dsn: str) -> AsyncIterator[Opened]:
    connection = await asyncpg.connect(dsn)
    try:
        async with connection.transaction():
            yield connection, connection.execute
    finally:
        await connection.close()


@asynccontextmanager
async def asyncpg_pool(dsn: str) -> AsyncIterator[Opened]:
    async with asyncpg.create_pool(dsn, min_size=1) as pool, pool.acquire() as connection, connection.transaction():
        yield connection, connection.execute


def spoken(dsn: str, driver: str) -> str:
    return dsn.replace("postgresql://", f"postgresql+{driver}://", 1)


@asynccontextmanager
async def alchemy_connection(dsn: str) -> AsyncIterator[Opened]:
    engine = sa.create_engine(spoken(dsn, "psycopg"), poolclass=NullPool)
    with engine.begin() as connection:
        yield connection, lambda text: connection.execute(sa.text(text))


@asynccontextmanager
async def alchemy_session(dsn: str) -> AsyncIterator[Opened]:
    engine = sa.create_engine(spoken(dsn, "psycopg"), poolclass=NullPool)
    with Session(engine) as session, session.begin():
        yield session, lambda text: session.execute(sa.text(text))


def _async_connection(driver: str) -> Library:
    @asynccontextmanager
    async def opened(dsn: str) -> AsyncIterator[Opened]:
        engine = create_async_engine(spoken(dsn, driver), poolclass=NullPool)
        async with engine.begin() as connection:
            yield connection, lambda text: connection.execute(sa.text(text))

    return opened


def _async_session(driver: str) -> Library:
    @asynccontextmanager
    async def opened(dsn: str) -> AsyncIterator[Opened]:
        engine = create_async_engine(spoken(dsn, driver), poolclass=NullPool)
        async with AsyncSession(engine) as session, session.begin():
            yield session, lambda text: session.execute(sa.text(text))

    return opened


@asynccontextmanager
async def django_atomic(dsn: str) -> AsyncIterator[Opened]:
    with django_connection(dsn) as connection:
        from django.db import transaction

        with transaction.atomic():

            def execute(text: str) -> None:
                with connection.cursor() as cursor:
                    cursor.execute(text)

            yield connection, execute


class django_connection:
    """Django's default connection, led to that database; in this thread alone, as Django has it."""

    def __init__(self, dsn: str) -> None:
        given = conninfo_to_dict(dsn)
        self._database = {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": given["dbname"],
            "USER": given.get("user", ""),
            "PASSWORD": given.get("password", ""),
            "HOST": given.get("host", ""),
            "PORT": given.get("port", ""),
        }

    def __enter__(self) -> Any:
        if not settings.configured:
            settings.configure(DATABASES={"default": self._database}, USE_TZ=True)
            django.setup()
        from django.db import connection

        connection.settings_dict.update(self._database)
        connection.features.minimum_database_version = (13,)  # releases before this one work with it
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # the tests are coroutines, and nothing else waits for their loop
        return connection

    def __exit__(self, *error: object) -> None:
        from django.db import connection

        connection.close()
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


LIBRARIES: dict[str, Library] = {
    "psycopg": psycopg_sync,
    "psycopg-autocommit": psycopg_autocommit,
    "psycopg-async": psycopg_async,
    "asyncpg": asyncpg_plain,
    "asyncpg-pool": asyncpg_pool,
    "sqlalchemy-connection": alchemy_connection,
    "sqlalchemy-session": alchemy_session,
    "sqlalchemy-async-connection-psycopg": _async_connection("psycopg"),
    "sqlalchemy-async-session-psycopg": _async_session("psycopg"),
    "sqlalchemy-async-connection-asyncpg": _async_connection("asyncpg"),
    "sqlalchemy-async-session-asyncpg": _async_session("asyncpg"),
    "django": django_atomic,
}
