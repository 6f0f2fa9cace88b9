"""Enqueue and settle in the caller's transaction: the same facts with each library, the real one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from pg_kit import stranger
from within_kit import LIBRARIES, Library, settled

from headrace import ConfigError, DuplicateJob, Job, LeaseLost, Queue, QueueFull, connect, connect_async
from headrace.testing.clock import wait_until


class Undo(Exception):
    """Makes a transaction roll back."""


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Library:
    return LIBRARIES[request.param]


@pytest.fixture
def queue(dsn: str) -> Iterator[Queue]:
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute("CREATE TABLE orders (id text)")
    with connect(dsn, poll=60.0) as queue:
        yield queue


def orders(dsn: str) -> int:
    with psycopg.connect(dsn) as other:
        row = other.execute("SELECT count(*) FROM orders").fetchone()
    assert row is not None
    return int(row[0])


async def test_a_job_is_seen_at_the_commit_and_not_before(dsn: str, library: Library, queue: Queue) -> None:
    async with library(dsn) as (connection, execute):
        await settled(queue.within(connection).enqueue(Job(id="a", payload=b"\x00\xff", priority=3)))
        await settled(execute("INSERT INTO orders VALUES ('o')"))
        assert queue.dequeue(timeout=0) is None
        assert queue.stats().enqueued == 0
    job = queue.dequeue(timeout=0)
    assert job is not None
    assert (job.id, job.payload, job.priority) == ("a", b"\x00\xff", 3)
    assert orders(dsn) == 1
    assert queue.stats().enqueued == 1


async def test_a_job_is_gone_with_the_rollback(dsn: str, library: Library, queue: Queue) -> None:
    with suppress(Undo):
        async with library(dsn) as (connection, execute):
            # First of all, before the library has seen a statement of its own.
            await settled(queue.within(connection).enqueue(Job(id="a")))
            await settled(execute("INSERT INTO orders VALUES ('o')"))
            raise Undo
    assert queue.find("a") is None
    assert orders(dsn) == 0
    assert queue.stats().enqueued == 0
    queue.enqueue(Job(id="a"))


async def test_a_duplicate_stores_nothing_and_leaves_the_transaction_usable(
    dsn: str, library: Library, queue: Queue
) -> None:
    queue.enqueue(Job(id="b"))
    async with library(dsn) as (connection, execute):
        await settled(execute("INSERT INTO orders VALUES ('o')"))
        with pytest.raises(DuplicateJob, match="'b'"):
            await settled(queue.within(connection).enqueue_many([Job(id="a"), Job(id="b"), Job(id="c")]))
        with pytest.raises(DuplicateJob, match="'d'"):
            await settled(queue.within(connection).enqueue_many([Job(id="d"), Job(id="d")]))
        await settled(queue.within(connection).enqueue(Job(id="e")))
        await settled(execute("INSERT INTO orders VALUES ('p')"))
    assert [job.id for job in queue.dequeue_many(10, timeout=0)] == ["b", "e"]
    assert orders(dsn) == 2
    stats = queue.stats()
    assert (stats.enqueued, stats.ready, stats.inflight, stats.unaccounted) == (2, 0, 2, 0)


async def test_a_full_queue_leaves_the_transaction_usable(dsn: str, library: Library, queue: Queue) -> None:
    with connect(dsn, queue="small", capacity=2, overflow="block") as small:
        async with library(dsn) as (connection, execute):
            inside = small.within(connection)
            await settled(inside.enqueue_many([]))
            await settled(inside.enqueue_many([Job(), Job()]))
            with pytest.raises(QueueFull):
                await settled(inside.enqueue(Job()))
            await settled(execute("INSERT INTO orders VALUES ('o')"))
        assert small.stats().ready == 2
    assert orders(dsn) == 1


@pytest.mark.parametrize("committed", [True, False])
async def test_an_ack_holds_with_the_writes_beside_it(
    dsn: str, library: Library, queue: Queue, committed: bool
) -> None:
    queue.enqueue(Job(id="a"))
    job = queue.dequeue(timeout=0)
    assert job is not None
    with suppress(Undo):
        async with library(dsn) as (connection, execute):
            await settled(execute("INSERT INTO orders VALUES ('o')"))
            await settled(queue.within(connection).ack(job))
            if not committed:
                raise Undo
    assert orders(dsn) == int(committed)
    assert (queue.stats().acked, queue.stats().inflight) == ((1, 0) if committed else (0, 1))
    if committed:
        with pytest.raises(LeaseLost):
            queue.ack(job)
    else:
        queue.ack(job)


async def test_a_lost_lease_changes_nothing_and_leaves_the_transaction_usable(
    dsn: str, library: Library, queue: Queue
) -> None:
    queue.enqueue(Job(id="a"))
    old = queue.dequeue(timeout=0)
    assert old is not None
    queue.release(old)
    held = queue.dequeue(timeout=0)
    assert held is not None
    async with library(dsn) as (connection, execute):
        inside = queue.within(connection)
        for late in (inside.ack, inside.nack, inside.release, inside.bury):
            with pytest.raises(LeaseLost):
                await settled(late(old))
        await settled(execute("INSERT INTO orders VALUES ('o')"))
    assert orders(dsn) == 1
    assert queue.stats().ack_too_late == 4
    queue.ack(held)


async def test_every_way_of_settling_can_be_part_of_it(dsn: str, library: Library, queue: Queue) -> None:
    names = ["nacked", "later", "released", "buried", "exhausted"]
    queue.enqueue_many(Job(id=name, max_attempts=1 if name == "exhausted" else 3) for name in names)
    jobs = {job.id: job for job in queue.dequeue_many(10, timeout=0)}
    async with library(dsn) as (connection, _):
        inside: Any = queue.within(connection)
        await settled(inside.nack(jobs["nacked"], error="once"))
        await settled(inside.nack(jobs["later"], delay=60.0))
        await settled(inside.release(jobs["released"]))
        await settled(inside.bury(jobs["buried"], error=ValueError("no")))
        await settled(inside.nack(jobs["exhausted"], error="never"))
    again = {job.id: job for job in queue.dequeue_many(10, timeout=0)}
    assert {name: (job.attempt, job.last_error) for name, job in again.items()} == {
        "nacked": (2, "once"),
        "released": (1, None),
    }
    assert {job.id: job.last_error for job in queue.dead()} == {"buried": "ValueError: no", "exhausted": "never"}
    stats = queue.stats()
    assert (stats.delayed, stats.inflight, stats.dead, stats.retried, stats.unaccounted) == (1, 2, 2, 2, 0)


async def test_a_key_is_processed_once_and_forgotten_by_age(dsn: str, library: Library, queue: Queue) -> None:
    async with library(dsn) as (connection, _):
        inside: Any = queue.within(connection)
        assert await settled(inside.processed("charge:7")) is True
        assert await settled(inside.processed("charge:7")) is False
    with suppress(Undo):
        async with library(dsn) as (connection, _):
            assert await settled(queue.within(connection).processed("charge:7")) is False
            assert await settled(queue.within(connection).processed("charge:8")) is True
            raise Undo
    async with library(dsn) as (connection, _):
        inside = queue.within(connection)
        assert await settled(inside.processed("charge:8")) is True
        assert await settled(inside.forget_processed(3600.0)) == 0
        assert await settled(inside.forget_processed(0.0)) == 2
        assert await settled(inside.processed("charge:7")) is True


async def test_a_connection_to_another_database_is_refused(dsn: str, library: Library, databases: Any) -> None:
    elsewhere = databases.take()
    try:
        with connect(elsewhere) as other, connect(dsn) as queue:
            other.stats()
            async with library(elsewhere) as (connection, _):
                with pytest.raises(ConfigError, match="another database"):
                    await settled(queue.within(connection).enqueue(Job(id="a")))
                with pytest.raises(ConfigError, match="another database"):
                    await settled(queue.within(connection).processed("a"))
            assert other.find("a") is None
    finally:
        databases.give_back(elsewhere)


async def test_a_connection_to_a_database_without_queues_is_refused(
    dsn: str, library: Library, queue: Queue, databases: Any
) -> None:
    elsewhere = databases.take()
    try:
        with pytest.raises(ConfigError, match="another database"):
            async with library(elsewhere) as (connection, _):
                await settled(queue.within(connection).enqueue(Job(id="a")))
    finally:
        databases.give_back(elsewhere)


async def test_a_connection_of_a_user_without_rights_is_refused_and_its_transaction_can_be_rolled_back(
    dsn: str, library: Library, queue: Queue
) -> None:
    with stranger(dsn) as (url, name):
        with psycopg.connect(dsn) as owner:
            owner.execute(f"GRANT USAGE ON SCHEMA public TO {name}; GRANT INSERT ON orders TO {name}".encode())
        with suppress(Undo):
            async with library(url) as (connection, execute):
                await settled(execute("INSERT INTO orders VALUES ('o')"))
                with pytest.raises(ConfigError, match=r"may not do that \(permission denied for schema .*GRANT"):
                    await settled(queue.within(connection).enqueue(Job(id="a")))
                raise Undo
        async with library(url) as (connection, execute):
            await settled(execute("INSERT INTO orders VALUES ('p')"))
    assert orders(dsn) == 1
    assert queue.find("a") is None


async def test_the_async_face_takes_the_same_connections(dsn: str, library: Library, queue: Queue) -> None:
    async with connect_async(dsn) as other:
        async with library(dsn) as (connection, _):
            await settled(other.within(connection).enqueue(Job(id="a")))
        assert await other.find("a") is not None


async def test_a_sleeping_worker_is_woken_by_the_commit(dsn: str, library: Library, queue: Queue) -> None:
    waiting = asyncio.create_task(queue.as_async.dequeue(timeout=50.0))  # it looks by itself after 60 s
    consumers = queue.store.rooms.consumers  # type: ignore[attr-defined]  # not part of the contract
    await asyncio.to_thread(wait_until, lambda: consumers.tickets)
    async with library(dsn) as (connection, _):
        await settled(queue.within(connection).enqueue(Job(id="a")))
    job = await asyncio.wait_for(waiting, 30.0)
    assert job is not None
    assert job.id == "a"
