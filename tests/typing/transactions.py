"""What ``within`` returns, for each kind of connection: checked by ``make lint``, never run."""

from __future__ import annotations

from typing import Any, assert_type

import psycopg
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session

from headrace import AsyncQueue, Job, Queue
from headrace.queue import AsyncWithin, Within


def blocking(
    queue: Queue,
    other: AsyncQueue,
    connection: psycopg.Connection[Any],
    alchemy: Connection,
    session: Session,
) -> None:
    assert_type(queue.within(connection), Within)
    assert_type(queue.within(alchemy), Within)
    assert_type(other.within(session), Within)
    assert_type(queue.within(connection).enqueue(Job()), Job)
    assert_type(queue.within(connection).processed("key"), bool)
    queue.within(5)  # type: ignore[call-overload]


async def awaited(
    queue: Queue,
    other: AsyncQueue,
    connection: psycopg.AsyncConnection[Any],
    alchemy: AsyncConnection,
    session: AsyncSession,
) -> None:
    assert_type(queue.within(connection), AsyncWithin)
    assert_type(other.within(alchemy), AsyncWithin)
    assert_type(other.within(session), AsyncWithin)
    assert_type(await other.within(session).enqueue(Job()), Job)
