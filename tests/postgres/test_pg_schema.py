"""The tables: what the migrations make is what schema.sql says; each is applied once; releases get along."""

from __future__ import annotations

import threading
from importlib import resources

import psycopg
import pytest
from pg_kit import connected, described, stranger

import headrace
from headrace import ConfigError, Job, sql
from headrace.postgres import schema as tables


def with_more(monkeypatch: pytest.MonkeyPatch, *scripts: str) -> None:
    """As in a later release."""
    steps = sql.migrations("postgres")
    more = [(len(steps) + number, "more", script) for number, script in enumerate(scripts, 1)]
    monkeypatch.setattr(sql, "migrations", lambda dialect: [*steps, *more])


def test_the_reviewed_schema_equals_the_migrations_applied(dsn: str) -> None:
    reviewed = resources.files(sql).joinpath("postgres", "schema.sql").read_text("utf-8")
    with connected(dsn) as connection:
        connection.execute(reviewed.encode())
        tables.migrate(connection, "migrated")
    made, said = described(dsn, "migrated"), described(dsn, "headrace")
    assert len(made["columns"]) > 80
    assert made == said


def test_migrations_are_numbered_without_gaps() -> None:
    numbers = [number for number, _, _ in sql.migrations("postgres")]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("attempt", range(3))
def test_eight_at_once_apply_each_migration_once(dsn: str, attempt: int) -> None:
    start, done, failed = threading.Barrier(8), [], []

    def apply() -> None:
        with connected(dsn) as connection:
            start.wait(10)
            try:
                done.extend(tables.migrate(connection, "headrace"))
            except Exception as error:
                failed.append(error)

    threads = [threading.Thread(target=apply) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed
    assert done == [f"{number:04} {name}" for number, name, _ in sql.migrations("postgres")]


def test_two_installations_in_one_database_know_nothing_of_each_other(dsn: str) -> None:
    with headrace.connect(f"{dsn}?schema=left") as left, headrace.connect(f"{dsn}?schema=right") as right:
        left.enqueue(Job(id="a", payload=b"left"))
        right.enqueue(Job(id="a", payload=b"right"))
        taken = right.dequeue(0)
        assert taken is not None
        assert taken.payload == b"right"
        right.ack(taken)
        assert (left.stats().ready, right.stats().ready, right.stats().acked) == (1, 0, 1)


@pytest.mark.parametrize("schema", ["order", "Order", "_x1"])
def test_a_schema_may_be_called_as_a_word_of_sql(dsn: str, schema: str) -> None:
    with headrace.connect(dsn, schema=schema) as queue:
        queue.enqueue(Job(id="a"))
        job = queue.dequeue(0)
        assert job is not None
        queue.ack(job)
        assert queue.stats().unaccounted == 0


def test_an_older_program_works_on_with_tables_that_have_grown(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both one that is running, its statements prepared, and one that starts then."""
    with headrace.connect(dsn) as running:
        for _ in range(10):
            running.enqueue(Job())
        for _ in range(7):
            running.ack(running.dequeue(0))  # type: ignore[arg-type]  # there is one
        with monkeypatch.context() as newer:
            with_more(newer, "ALTER TABLE {schema}.jobs ADD COLUMN note text; CREATE TABLE {schema}.notes (a int);")
            with headrace.connect(dsn, max_attempts=1) as upgraded:
                assert upgraded.stats().ready == 3
        with headrace.connect(dsn, max_attempts=1) as started:
            for queue in (running, started):
                job = queue.dequeue(0)
                assert job is not None
                queue.bury(job, "enough")
                queue.enqueue(Job(id=f"by {id(queue)}"))
            assert started.stats().dead == 2
            assert running.stats().unaccounted == 0


def test_an_older_program_refuses_tables_that_it_would_spoil(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest migration does no harm, but one before it did."""
    with monkeypatch.context() as newer:
        with_more(newer, "-- breaking\nALTER TABLE {schema}.jobs RENAME COLUMN until TO leased;", "SELECT 1")
        with connected(dsn) as connection:
            tables.migrate(connection, "headrace")
    number = len(sql.migrations("postgres")) + 1
    with pytest.raises(ConfigError, match=rf"schema headrace: .* newer Headrace \(migration {number}, .*upgrade"):
        headrace.connect(dsn)
    with pytest.raises(ConfigError, match="newer Headrace"):
        headrace.connect(dsn, migrate=False)


def test_a_migration_that_fails_half_way_is_undone_and_tried_again(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with headrace.connect(dsn) as queue:
        queue.enqueue(Job(id="a"))
    before = described(dsn, "headrace")
    with monkeypatch.context() as newer, connected(dsn) as connection:
        with_more(newer, "CREATE TABLE {schema}.more (a int); INSERT INTO {schema}.nowhere VALUES (1);")
        with pytest.raises(psycopg.errors.UndefinedTable):
            tables.migrate(connection, "headrace")
    assert described(dsn, "headrace") == before
    with_more(monkeypatch, "CREATE TABLE {schema}.more (a int);")
    with headrace.connect(dsn) as queue:
        assert queue.dequeue(0) is not None
    assert described(dsn, "headrace") != before


def test_where_tables_are_not_to_be_made_missing_ones_are_refused(dsn: str) -> None:
    with pytest.raises(ConfigError, match="schema headrace are missing or old: run 'headrace migrate'"):
        headrace.connect(dsn, migrate=False)
    with connected(dsn) as connection:
        assert connection.execute("SELECT FROM pg_namespace WHERE nspname = 'headrace'").fetchone() is None
        tables.migrate(connection, "headrace")
    headrace.connect(dsn, migrate=False).close()


def test_who_may_not_make_the_tables_is_told_what_to_do(dsn: str) -> None:
    with stranger(dsn) as (url, _), pytest.raises(ConfigError, match="headrace migrate --show"):
        headrace.connect(url)


def test_who_may_make_tables_in_a_schema_need_not_be_allowed_to_make_schemas(dsn: str) -> None:
    with stranger(dsn) as (url, name):
        with connected(dsn) as owner:
            owner.execute(f"CREATE SCHEMA headrace AUTHORIZATION {name}".encode())
        with headrace.connect(url) as queue:
            queue.enqueue(Job())


def test_a_schema_whose_name_is_the_servers_own_is_refused_in_words(dsn: str) -> None:
    with pytest.raises(ConfigError, match=r"pg_mine: names that begin with pg_ .*choose another"):
        headrace.connect(dsn, schema="pg_mine")


@pytest.mark.parametrize("schema", ["a b", 'a"b', "a;drop", "", "1a", "é", 7, None])
def test_a_schema_that_is_no_identifier_is_refused(dsn: str, schema: object) -> None:
    with pytest.raises(ConfigError, match=r"schema: .* is not a name"):
        headrace.connect(dsn, schema=schema)
