"""F23: the tables are made once, by whoever comes first, wholly or not at all; and they are what schema.sql says."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from importlib import resources
from pathlib import Path

import pytest
import raw
from children import Child, ChildFailed, together
from faults import Plan, following
from sqlite_files import drain, open_at

from headrace import sql
from headrace.errors import ConfigError
from headrace.job import Job
from headrace.sqlite import schema

HEADER = "-- What the migrations make of an empty file, for the reader: a test holds the two equal.\n\n"


def snapshot(connection: sqlite3.Connection) -> str:
    """All tables, each with its indexes behind it, by name."""
    rows = connection.execute(
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite#_%' ESCAPE '#' "
        "ORDER BY tbl_name, type <> 'table', name"
    )
    return "\n\n".join(f"{row[0]};" for row in rows) + "\n"


def test_the_reviewed_schema_equals_the_migrations_applied(path: Path) -> None:
    open_at(path).close()
    with closing(sqlite3.connect(path)) as connection:
        migrated = snapshot(connection)
    reviewed = resources.files(sql).joinpath("sqlite", "schema.sql").read_text("utf-8")
    assert reviewed == HEADER + migrated
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(reviewed)
        assert snapshot(connection) == migrated


def test_migrations_are_numbered_without_gaps() -> None:
    assert [number for number, _, _ in sql.migrations("sqlite")] == list(range(1, len(sql.migrations("sqlite")) + 1))


def _open_and_enqueue(path: Path, number: int) -> None:
    with open_at(path) as queue:
        queue.enqueue(Job(id=f"job{number}"))


@pytest.mark.parametrize("attempt", range(5))
def test_twelve_processes_open_a_new_file_at_once(path: Path, attempt: int) -> None:
    """F23: twelve successes, twelve jobs, each migration once."""
    together([(_open_and_enqueue, (path, number)) for number in range(12)])
    assert raw.query(path, "SELECT number FROM headrace_migrations") == [(1,)]
    with open_at(path) as queue:
        assert sorted(job.id for job in drain(queue)) == sorted(f"job{number}" for number in range(12))


def test_a_process_killed_at_any_statement_of_a_migration_leaves_none_or_all_of_it(tmp_path: Path) -> None:
    """F23: the next one to open the file completes what is missing."""

    def child(path: Path, k: int) -> None:
        with following(Plan(k, kill=True)):
            open_at(path)

    with following(Plan()) as plan:
        open_at(tmp_path / "clean.db").close()
    assert any(statement.startswith("CREATE TABLE headrace_jobs") for statement in plan.statements)
    for k in range(len(plan.statements)):
        path = tmp_path / f"killed{k}.db"
        with pytest.raises(ChildFailed, match="without a word: -9"):
            Child(child, path, k).result()
        if path.exists():
            tables = raw.query(
                path, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name LIKE 'headrace%'"
            )
            assert tables == [(0,)]
        with open_at(path) as queue:
            queue.enqueue(Job(id="a"))
        raw.check(path)
        with closing(sqlite3.connect(tmp_path / "clean.db")) as clean, closing(sqlite3.connect(path)) as completed:
            assert snapshot(completed) == snapshot(clean)


def test_a_migration_that_fails_half_way_is_undone_and_tried_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F23: what an upgrade to a later schema would do, with jobs in the file."""
    with open_at(path) as queue:
        queue.enqueue(Job(id="a"))
    steps = sql.migrations("sqlite")
    broken = "CREATE TABLE headrace_more (a TEXT);\nINSERT INTO headrace_nowhere VALUES (1);\n"
    mended = "CREATE TABLE headrace_more (a TEXT);\n"
    monkeypatch.setattr(sql, "migrations", lambda dialect: [*steps, (len(steps) + 1, "more", broken)])
    with pytest.raises(Exception, match="headrace_nowhere"):
        open_at(path)
    assert raw.query(path, "SELECT count(*) FROM sqlite_schema WHERE name = 'headrace_more'") == [(0,)]
    monkeypatch.setattr(sql, "migrations", lambda dialect: [*steps, (len(steps) + 1, "more", mended)])
    with open_at(path) as queue:
        assert [job.id for job in drain(queue)] == ["a"]
    assert raw.query(path, "SELECT count(*) FROM sqlite_schema WHERE name = 'headrace_more'") == [(1,)]


def test_a_file_of_a_newer_schema_is_refused_and_not_touched(path: Path) -> None:
    """F23: an older program refuses instead of guessing."""
    with open_at(path) as queue:
        queue.enqueue(Job(id="a"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO headrace_migrations (number, name) VALUES (999, 'from_the_future')")
    before = raw.picture(path)
    with pytest.raises(ConfigError, match=r"newer Headrace \(schema 999.*upgrade"):
        open_at(path)
    assert raw.picture(path) == before


def test_the_tables_of_others_in_the_same_file_are_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE canary (song TEXT)")
        connection.execute("INSERT INTO canary VALUES ('tweet')")
    with open_at(path) as queue:
        queue.enqueue(Job(id="a"))
        assert len(drain(queue)) == 1
    assert raw.query(path, "SELECT * FROM canary") == [("tweet",)]


def test_a_script_is_split_at_its_statements_and_nowhere_else() -> None:
    script = "CREATE TABLE a (b TEXT DEFAULT ';');  -- it's one; really\nINSERT INTO a\nVALUES ('x;y');\n"
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in schema.split(script):
            connection.execute(statement)
        assert connection.execute("SELECT b FROM a").fetchall() == [("x;y",)]
