"""What holds for transactions of the caller's, whatever the library; and what a pool makes of a handler that settles
its own job in one."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy as sa
from psycopg.rows import dict_row
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool
from within_kit import django_connection, spoken
from within_worker import pay

from headrace import App, ConfigError, Job, Pool, Queue, QueueClosed, Unsupported, connect
from headrace.pool import current
from headrace.testing import VirtualClock
from headrace.testing.clock import wait_until


@pytest.fixture
def queue(dsn: str) -> Iterator[Queue]:
    with connect(dsn, patience=2.0) as queue:
        yield queue


@pytest.fixture
def connection(dsn: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with psycopg.connect(dsn) as connection:
        yield connection


# What it takes


@pytest.mark.parametrize("url", ["memory://", "sqlite:///jobs.db"])
def test_a_queue_that_is_in_no_database_of_yours_says_so(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with connect(url) as queue:
        assert not queue.capabilities.transactional
        with pytest.raises(Unsupported, match="no transaction of yours"):
            queue.within(object())  # type: ignore[call-overload]


@pytest.mark.parametrize("wrong", [None, 5, "postgresql://…", object()])
def test_what_is_no_connection_is_refused(queue: Queue, wrong: Any) -> None:
    with pytest.raises(ConfigError, match=f"psycopg, asyncpg or SQLAlchemy.*not {type(wrong).__name__}"):
        queue.within(wrong)


@pytest.mark.parametrize("make", [create_engine, sessionmaker, create_async_engine, async_sessionmaker])
def test_what_opens_connections_is_none_itself(dsn: str, queue: Queue, make: Any) -> None:
    opener = make(spoken(dsn, "psycopg")) if "engine" in make.__name__ else make()
    with pytest.raises(ConfigError, match=rf"not {type(opener).__name__}.*begin\(\)"):
        queue.within(opener)


def test_another_database_under_sqlalchemy_is_refused(queue: Queue) -> None:
    with sa.create_engine("sqlite://").begin() as connection, pytest.raises(ConfigError, match=r"sqlite\+pysqlite"):
        queue.within(connection).enqueue(Job())


async def test_a_connection_without_a_transaction_is_refused(dsn: str, queue: Queue) -> None:
    refused = pytest.raises(ConfigError, match="committed at once")
    with psycopg.connect(dsn, autocommit=True) as blocking, refused:
        queue.within(blocking).enqueue(Job())
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as awaited:
        with refused:
            await queue.within(awaited).enqueue(Job())
    plain = await asyncpg.connect(dsn)
    with refused:
        await queue.within(plain).enqueue(Job())
    await plain.close()
    with django_connection(dsn) as django, refused:
        queue.within(django).enqueue(Job())
    engine = sa.create_engine(spoken(dsn, "psycopg"), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as alchemy, refused:
        queue.within(alchemy).enqueue(Job())
    for driver in ("psycopg", "asyncpg"):
        async_engine = create_async_engine(spoken(dsn, driver), poolclass=NullPool, isolation_level="AUTOCOMMIT")
        async with async_engine.connect() as async_alchemy:
            with refused:
                await queue.within(async_alchemy).enqueue(Job())
    assert queue.stats().enqueued == 0


def test_a_connection_of_any_row_and_cursor_factory_will_do(dsn: str, queue: Queue) -> None:
    with psycopg.connect(dsn, row_factory=dict_row, cursor_factory=psycopg.ClientCursor) as connection:
        queue.within(connection).enqueue(Job(id="a"))
    assert queue.find("a") is not None


def test_sessions_that_applications_derive_will_do(dsn: str, queue: Queue) -> None:
    class Mine(Session):
        pass

    made = sessionmaker(sa.create_engine(spoken(dsn, "psycopg"), poolclass=NullPool), class_=Mine)
    with made.begin() as session:
        queue.within(session).enqueue(Job(id="a"))
    shared = scoped_session(made)
    queue.within(shared).enqueue(Job(id="b"))
    shared.commit()
    shared.remove()
    assert queue.stats().ready == 2


def test_a_closed_queue_takes_nothing_in_a_transaction_either(queue: Queue, connection: Any) -> None:
    inside: Any = queue.within(connection)
    queue.close()
    with pytest.raises(QueueClosed):
        inside.enqueue(Job())


@pytest.mark.parametrize("key", [7, "a\0b", "\ud800", "k" * 256])
def test_a_key_that_no_store_can_keep_is_refused(queue: Queue, connection: Any, key: Any) -> None:
    with pytest.raises(ConfigError, match="processed: the key"):
        queue.within(connection).processed(key)


def test_whoever_processes_the_same_key_waits_for_the_first(dsn: str, queue: Queue) -> None:
    answers: list[bool] = []

    def second() -> None:
        with psycopg.connect(dsn) as other:
            answers.append(queue.within(other).processed("k"))

    with psycopg.connect(dsn) as first:
        assert queue.within(first).processed("k")
        thread = threading.Thread(target=second)
        thread.start()
    thread.join(30.0)
    assert answers == [False]


def test_a_job_is_put_in_as_it_is_elsewhere() -> None:
    queries = Path(connect.__code__.co_filename).parent / "sql/postgres/queries"

    def said(name: str, begin: str, end: str) -> str:
        text = re.sub(r"::(int|bigint)\b(?!\[)|\s+", "", (queries / f"{name}.sql").read_text())
        return text[text.index(begin) : text.index(end)]

    for part in (("givenAS(", "),putAS("), ("INSERTINTO{schema}.jobs(", "FROMgiven")):
        assert said("put_within", *part) == said("put", *part)


def test_a_job_that_is_acked_in_a_transaction_is_archived_too(dsn: str, connection: Any) -> None:
    with connect(dsn, archive=60) as queue:
        queue.enqueue(Job(id="a"))
        (job,) = queue.dequeue_many(1, timeout=0)
        queue.within(connection).ack(job)
        assert connection.execute("SELECT id FROM headrace.archive").fetchall() == [("a",)]


# An open transaction holds nobody up


@pytest.mark.parametrize("committed", [True, False])
def test_a_job_in_an_open_transaction_holds_up_neither_its_neighbours_nor_the_clock(dsn: str, committed: bool) -> None:
    clock = VirtualClock()
    with connect(dsn, clock=clock, patience=1.0, lease=30.0) as queue:
        queue.enqueue_many([Job(id="a"), Job(id="b"), Job(id="c")])
        a, b, _ = queue.dequeue_many(3, timeout=0)
        with psycopg.connect(dsn) as connection:
            queue.within(connection).ack(a)
            clock.advance(10.0)
            held = queue.extend_many([a, b], 30.0)
            assert [job.id for job in held] == ["a", "b"]
            assert held[0].lease_until == a.lease_until, "nobody can write to it now"
            assert b.lease_until is not None
            assert held[1].lease_until is not None
            assert held[1].lease_until > b.lease_until
            clock.advance(25.0)  # those of a and the third are over
            assert (queue.stats().ready, queue.stats().inflight, queue.stats().expired_leases) == (1, 2, 1)
            if not committed:
                connection.rollback()
        clock.advance(1.0)  # b's holds still
        stats = queue.stats()
        assert (stats.acked, stats.ready, stats.expired_leases) == ((1, 1, 1) if committed else (0, 2, 2))
        assert stats.unaccounted == 0


def test_a_call_in_a_transaction_is_not_held_up_by_what_it_has_locked_itself(dsn: str) -> None:
    clock = VirtualClock()
    with connect(dsn, clock=clock, patience=1.0, lease=30.0) as queue:
        queue.enqueue(Job(id="a"))
        (job,) = queue.dequeue_many(1, timeout=0)
        with psycopg.connect(dsn) as connection:
            inside = queue.within(connection)
            inside.ack(job)
            clock.advance(31.0)
            inside.enqueue(Job(id="b"))
        assert (queue.stats().acked, queue.stats().ready) == (1, 1)


# Tasks


async def test_a_task_is_enqueued_in_the_transaction_of_its_caller(dsn: str) -> None:
    with App(dsn) as app:

        @app.task
        def mail(to: str) -> None: ...

        with psycopg.connect(dsn) as connection:
            first = mail.within(connection).enqueue(to="a")
            mail.options(priority=3).within(connection).enqueue_many([{"to": "b"}, {"to": "c"}])
            with pytest.raises(ConfigError, match="not NoneType"):
                mail.within(None).enqueue(to="d")
            with pytest.raises(ConfigError, match="blocks"):
                await mail.within(connection).enqueue_async(to="d")
            assert app.queue().stats().ready == 0
        assert app.queue().stats().ready == 3
        assert app.queue().find(first.id) is not None
        awaited = await asyncpg.connect(dsn)
        transaction = awaited.transaction()
        await transaction.start()
        await mail.within(awaited).enqueue_async(to="e")
        await mail.within(awaited).enqueue_many_async([{"to": "f"}])
        with pytest.raises(ConfigError, match="asynchronous"):
            mail.within(awaited).enqueue(to="g")
        await transaction.rollback()
        await awaited.close()
        assert app.queue().stats().enqueued == 3


# Pools


def test_a_handler_that_acks_in_its_transaction_is_not_acked_again(dsn: str, queue: Queue) -> None:
    def in_a_thread(job: Job) -> None:
        with psycopg.connect(dsn) as connection:
            queue.within(connection).ack(job)

    async def on_the_loop(job: Job) -> None:
        async with await psycopg.AsyncConnection.connect(dsn) as connection:
            await queue.within(connection).ack(job)

    async def without_a_pause(job: Job) -> None:
        in_a_thread(job)

    for handler in (in_a_thread, on_the_loop, without_a_pause):
        with connect(dsn) as worked:
            worked.enqueue_many([Job(), Job()])
            worked.close()
            summary = Pool(worked, handler, workers=2).run()
            assert (summary.acked, summary.lost) == (2, 0)
    stats = queue.stats()
    assert (stats.acked, stats.ack_too_late, stats.inflight, stats.unaccounted) == (6, 0, 0, 0)


def test_a_handler_whose_transaction_was_rolled_back_runs_again(dsn: str, queue: Queue) -> None:
    queue.enqueue(Job(id="a"))
    queue.close()
    attempts: list[int] = []

    def handler(job: Job) -> None:
        attempts.append(job.attempt)
        with psycopg.connect(dsn) as connection:
            queue.within(connection).ack(current().job)
            if job.attempt == 1:
                connection.rollback()

    Pool(queue, handler, workers=1, retry=lambda attempt: 0.0).run()
    assert attempts == [1, 2]
    with connect(dsn) as after:
        stats = after.stats()
        assert (stats.acked, stats.retried, stats.ack_too_late, stats.unaccounted) == (1, 1, 0, 0)


def test_a_process_that_settles_its_job_in_a_transaction_tells_the_pool(dsn: str, queue: Queue) -> None:
    queue.enqueue_many([Job(payload=f"{dsn} {fate}".encode()) for fate in ("commit", "rollback")])
    queue.close()
    summary = Pool(queue, pay, workers=1, process=True, retry=lambda attempt: 0.0).run()
    assert (summary.acked, summary.nacked, summary.lost) == (2, 1, 0)
    with connect(dsn) as after:
        stats = after.stats()
        assert (stats.acked, stats.retried, stats.ack_too_late, stats.unaccounted) == (2, 1, 0, 0)


def test_a_job_has_its_effect_exactly_once_though_its_workers_are_killed(dsn: str) -> None:
    with connect(dsn, lease=1.0) as queue, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE effects (id text)")
        queue.enqueue_many(Job(id=f"{number}", max_attempts=100) for number in range(400))

        def effects() -> int:
            row = connection.execute("SELECT count(*) FROM effects").fetchone()
            assert row is not None
            return int(row[0])

        for enough in (40, 120, 200, 280, 400):
            worker = subprocess.Popen([sys.executable, str(Path(__file__).with_name("within_worker.py")), dsn])
            try:
                wait_until(lambda enough=enough: effects() >= enough, 60.0)  # type: ignore[misc]
            finally:
                worker.kill()
                worker.wait()
        wait_until(lambda: queue.stats().acked == 400, 10.0)
        row = connection.execute("SELECT count(*), count(DISTINCT id) FROM effects").fetchone()
        assert row == (400, 400)
        assert queue.stats().unaccounted == 0
