"""The back door: an SQLite queue file read by a connection of our own, and what must be true of it at any moment."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

PLACES = ("delayed", "ready", "inflight")
_GONE = ("acked", "cancelled", "taken", "dropped", "dead_dropped")


class Row(NamedTuple):
    """Where a job is, and what must not change by itself."""

    id: str
    place: str
    attempt: int
    enqueued: int
    last_error: str | None
    cancelled: bool


class Picture(NamedTuple):
    """One queue in a file: equal pictures mean that nothing has happened in between."""

    rows: tuple[Row, ...]
    figures: tuple[tuple[str, int], ...]

    def ids(self) -> Counter[str]:
        return Counter(row.id for row in self.rows)


_connect = sqlite3.connect  # the real one, also while a test puts a faulty one in its place


def connect(path: Path) -> sqlite3.Connection:
    connection = _connect(path, timeout=20, isolation_level=None)
    connection.row_factory = sqlite3.Row
    return connection


def query(path: Path, sql: str, *values: object) -> list[Any]:
    with closing(connect(path)) as connection:
        return [tuple(row) for row in connection.execute(sql, values)]


def picture(path: Path, queue: str = "default") -> Picture:
    with closing(connect(path)) as connection:
        connection.execute("BEGIN")
        found = connection.execute("SELECT * FROM headrace_queues WHERE name = ?", (queue,)).fetchone()
        jobs = connection.execute("SELECT * FROM headrace_jobs WHERE queue = ? ORDER BY pk", (found["queue"],))
        rows = [_row(row, PLACES[row["state"]]) for row in jobs]
        dead = connection.execute("SELECT * FROM headrace_dead WHERE queue = ? ORDER BY pk", (found["queue"],))
        rows += [_row(row, "dead") for row in dead]
    figures = {name: found[name] for name in dict(found) if name not in ("queue", "name", "salt", "soonest")}
    return Picture(tuple(rows), tuple(figures.items()))


def _row(row: sqlite3.Row, place: str) -> Row:
    return Row(row["id"], place, row["attempt"], row["enqueued"], row["last_error"], bool(row["cancelled"]))


def check(path: Path) -> None:
    """Every invariant that can be seen in the file. Any moment will do: also right after a kill."""
    with closing(connect(path)) as connection:
        assert [tuple(row) for row in connection.execute("PRAGMA integrity_check")] == [("ok",)]
        connection.execute("BEGIN")
        queues = {row["queue"]: row for row in connection.execute("SELECT * FROM headrace_queues")}
        jobs = connection.execute("SELECT * FROM headrace_jobs").fetchall()
        dead = connection.execute("SELECT * FROM headrace_dead").fetchall()
        migrations = connection.execute("SELECT number, count(*) FROM headrace_migrations GROUP BY number").fetchall()
    assert migrations, "no migration is on record"
    assert all(count == 1 for _, count in map(tuple, migrations)), "a migration was applied twice"
    assert all(row["queue"] in queues for row in (*jobs, *dead)), "a job belongs to no queue"
    for number, queue in queues.items():
        mine = [row for row in jobs if row["queue"] == number]
        _check_places(queue, mine, [row for row in dead if row["queue"] == number])
        for row in mine:
            _check_job(queue, row)


def _check_places(queue: sqlite3.Row, jobs: list[sqlite3.Row], dead: list[sqlite3.Row]) -> None:
    for state, place in enumerate(PLACES):
        found = sum(row["state"] == state for row in jobs)
        assert found == queue[place], f"I1: {found} jobs are {place}, the figures say {queue[place]}"
    assert len(dead) == queue["dead"], f"I1: {len(dead)} jobs are dead, the figures say {queue['dead']}"
    double = [id for id, count in Counter(row["id"] for row in jobs).items() if count > 1]
    assert not double, f"I2b: {double} are unfinished twice"
    accounted = sum(queue[name] for name in _GONE) + len(jobs) + len(dead)
    assert queue["enqueued"] == accounted, f"C: {queue['enqueued']} enqueued, {accounted} accounted for"


def _check_job(queue: sqlite3.Row, row: sqlite3.Row) -> None:
    name, place = row["id"], PLACES[row["state"]]
    assert row["fence"] <= queue["fence"], f"I7: {name!r} has a fence that was never given"
    assert place == "ready" or row["due"] >= queue["soonest"], f"I2: {name!r} falls due and nobody will look"
    if place == "inflight":
        assert row["fence"] > 0, f"I2: {name!r} is in flight without a fence"
        assert 1 <= row["attempt"] <= row["max_attempts"], f"I3: {name!r} is at attempt {row['attempt']}"
    else:
        assert row["attempt"] < row["max_attempts"], f"I3: {name!r} is {place} and has no attempt left"
