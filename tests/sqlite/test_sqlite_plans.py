"""The statements stay on their indexes, and read in proportion to what they give, not to what waits."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlite_files import open_at

from headrace.job import Job
from headrace.sqlite.step import SQL


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    open_at(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as made:
        yield made


def plan(connection: sqlite3.Connection, name: str) -> list[str]:
    statement = SQL[name]
    names = re.findall(r":(\w+)", statement)
    values: Any = dict.fromkeys(names, 1) if names else (1,) * statement.count("?")
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("take", "headrace_jobs_ready (queue=?)"),
        ("promote", "headrace_jobs_due (queue=? AND due<?)"),
        ("expired", "headrace_jobs_due (queue=? AND due<?)"),
        ("soonest", "headrace_jobs_due (queue=?)"),
        ("oldest", "headrace_jobs_age (queue=? AND state=?)"),
        ("dead_ages", "headrace_dead_queue (queue=?)"),
        ("drop_oldest", "headrace_jobs_age (queue=? AND state=?)"),
        ("ack", "INTEGER PRIMARY KEY (rowid=?)"),
        ("held", "INTEGER PRIMARY KEY (rowid=?)"),
        ("extend", "INTEGER PRIMARY KEY (rowid=?)"),
        ("put_back", "INTEGER PRIMARY KEY (rowid=?)"),
        ("bury", "INTEGER PRIMARY KEY (rowid=?)"),
        ("remove", "INTEGER PRIMARY KEY (rowid=?)"),
        ("find", "headrace_jobs_id (queue=? AND id=?)"),
        ("exists", "headrace_jobs_id (queue=? AND id=?)"),
        ("find_dead", "headrace_dead_id (queue=? AND id=?)"),
        ("dead", "headrace_dead_queue (queue=? AND rowid>?)"),
        ("load", "INTEGER PRIMARY KEY (rowid=?)"),
        ("save", "INTEGER PRIMARY KEY (rowid=?)"),
    ],
)
def test_the_statement_stays_on_its_index(connection: sqlite3.Connection, name: str, index: str) -> None:
    lines = plan(connection, name)
    assert any(index in line for line in lines), lines
    assert not [line for line in lines if "TEMP B-TREE" in line], lines
    assert not [line for line in lines if line.startswith("SCAN") and not line.startswith("SCAN c")], lines


@pytest.mark.parametrize("name", sorted(SQL))
def test_no_statement_reads_all_jobs(connection: sqlite3.Connection, name: str) -> None:
    """But the one that follows a step of the calendar, which is rare and concerns them all."""
    full = [line for line in plan(connection, name) if line.startswith(("SCAN headrace_jobs", "SCAN headrace_dead"))]
    assert not full or name == "clock_step_jobs"


def _steps(connection: sqlite3.Connection, name: str, values: dict[str, int]) -> int:
    """How many instructions of SQLite's virtual machine one run takes; undone behind it."""
    count = 0

    def one() -> int:
        nonlocal count
        count += 1
        return 0

    connection.execute("BEGIN")
    connection.set_progress_handler(one, 1)
    connection.execute(SQL[name], values).fetchall()
    connection.set_progress_handler(None, 1)
    connection.execute("ROLLBACK")
    return count


def test_a_claim_reads_no_more_when_a_hundred_times_as_many_wait(path: Path, connection: sqlite3.Connection) -> None:
    take = {"queue": 1, "until": 1, "fence": 1, "limit": 10}
    with open_at(path, capacity=100_000) as queue:
        queue.enqueue_many([Job(priority=n % 3) for n in range(200)])
        few = _steps(connection, "take", take)
        queue.enqueue_many([Job(priority=n % 3, delay=float(n % 2)) for n in range(20_000)])
        many = _steps(connection, "take", take)
    assert many < few * 1.5  # the trees are one level deeper
