"""The statements stay on their indexes, and read in proportion to what they give: not to what waits, nor to what has
passed through and was not vacuumed yet. Whatever the planner knows: its statistics may be old, or none at all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

import psycopg
import pytest
from pg_databases import Databases

import headrace
from headrace.postgres.connections import stock
from headrace.postgres.statements import statements
from headrace.postgres.step import FIGURES

SQL = {name: text.decode() for name, text in statements("headrace").items()}
MANY, FEW, BATCH = 200_000, 2_000, 10
FRONT = {"rank": -(2**31), "place": 0, "before": None}

# A table of jobs with a past: so many came and went, so many wait, some later, some are leased.
FILL = """
ALTER TABLE headrace.jobs SET (autovacuum_enabled = off);
ALTER TABLE headrace.leases SET (autovacuum_enabled = off);
ALTER TABLE headrace.deltas SET (autovacuum_enabled = off);
INSERT INTO headrace.jobs (
    enqueued, run_at, due, until, queue, priority, max_attempts, attempt, delayed, absolute, aged, id, payload
)
SELECT n, n, n, 0, 1, 0, 5, 0, false, false, false, 'passed' || n, 'x' FROM generate_series(1, {passed}) AS n;
DELETE FROM headrace.jobs;
INSERT INTO headrace.jobs (
    enqueued, run_at, due, until, queue, priority, max_attempts, attempt, delayed, absolute, aged, id, payload
)
SELECT
    n, n, n, CASE WHEN n % 50 = 0 THEN n + 1 ELSE 0 END, 1, n % 3, 5, 0, n % 20 = 1, false, n % 100 = 7, 'job' || n, 'x'
FROM generate_series(1, {waiting}) AS n;
INSERT INTO headrace.leases (queue, until, jobs)
SELECT 1, n, ARRAY[n] FROM generate_series(1, {waiting} / 50) AS n;
INSERT INTO headrace.dead (
    enqueued, run_at, died, fence, queue, priority, max_attempts, attempt, cancelled, id, payload
)
SELECT n, n, n, 1, 1, 0, 5, 5, false, 'dead' || n, 'x' FROM generate_series(1, {waiting} / 10) AS n;
INSERT INTO headrace.archive (
    done, enqueued, run_at, fence, queue, priority, max_attempts, attempt, id, payload
)
SELECT n, n, n, 1, 1, 0, 5, 1, 'job' || n, 'x' FROM generate_series(1, {waiting} / 10) AS n;
INSERT INTO headrace.deltas (queue, enqueued) SELECT 1, 1 FROM generate_series(1, 100);
"""


class Plan(NamedTuple):
    pages: int
    nodes: list[str]


class Explained:
    """A database with so much in it; ``plan`` runs a statement and undoes it."""

    def __init__(self, dsn: str, passed: int, waiting: int) -> None:
        headrace.connect(dsn).close()
        self.connection = stock(dsn, 1, 60.0).open()  # as queues have them
        self.connection.execute("SET synchronous_commit = off")
        for statement in FILL.format(passed=passed, waiting=waiting).split(";"):
            self.connection.execute(statement.encode())

    def pks(self, condition: str, limit: int) -> list[int]:
        query = f"SELECT pk FROM headrace.jobs WHERE {condition} ORDER BY ~priority, pk LIMIT {limit}"  # noqa: S608
        return [row[0] for row in self.connection.execute(query.encode())]

    def plan(self, name: str, mode: str, values: dict[str, Any]) -> Plan:
        names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", SQL[name])))
        given = {"queue": 1, "now": 1_000_000_000, **values}
        text = re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", SQL[name])
        literals = [psycopg.sql.Literal(given.get(each, 0)).as_string(self.connection) for each in names]
        execute = f"EXECUTE one ({', '.join(literals)})" if names else "EXECUTE one"
        run = self.connection.execute
        run(f"SET plan_cache_mode = {mode}".encode())
        run(f"PREPARE one AS {text}".encode())
        try:
            # Twice: the first one may have to look at dead rows that it then marks for all who come after it.
            for _ in range(2):
                run("BEGIN")
                found = run(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {execute}".encode()).fetchone()
                run("ROLLBACK")
        finally:
            run("DEALLOCATE one")
        assert found is not None
        plan = found[0] if isinstance(found[0], list) else json.loads(found[0])
        return _read(plan[0]["Plan"])


def _read(node: dict[str, Any]) -> Plan:
    def walk(node: dict[str, Any]) -> Iterator[str]:
        yield f"{node['Node Type']} {node.get('Index Name') or node.get('Relation Name') or ''}".strip()
        for below in node.get("Plans", ()):
            yield from walk(below)

    return Plan(node["Shared Hit Blocks"] + node["Shared Read Blocks"], list(walk(node)))


@pytest.fixture(scope="module")
def filled(databases: Databases) -> Iterator[tuple[Explained, Explained]]:
    """A fresh queue with little in it, and an old one with much."""
    dsns = [databases.take(), databases.take()]
    few, many = Explained(dsns[0], 0, FEW), Explained(dsns[1], MANY, MANY)
    with closing(few.connection), closing(many.connection):
        yield few, many
    for dsn in dsns:
        databases.give_back(dsn)


@pytest.fixture(scope="module", params=["", "ANALYZE", "VACUUM ANALYZE"])
def pair(request: pytest.FixtureRequest, filled: tuple[Explained, Explained]) -> tuple[Explained, Explained]:
    """Never analysed at first."""
    for each in filled if request.param else ():
        each.connection.execute(request.param)
    return filled


def values_of(name: str, e: Explained) -> dict[str, Any]:
    leased = e.pks("until > 0", BATCH)
    some = {"jobs": leased, "fences": [0] * len(leased), "count": len(leased)}
    match name:
        case "look":
            (first,) = e.pks("NOT delayed AND until = 0", 1)
            return {"rank": -3, "place": first}
        case "take":
            (first,) = e.pks("NOT delayed AND until = 0", 1)
            return {"limit": BATCH, "lease": 1_000, "rank": -3, "place": first, "before": None}
        case "ack" | "ack_archive":
            return {**some, "now": 0}
        case "ack_claim":
            return {**some, "now": 0, "fence": 0}
        case "release":
            return {**some, "now": 0, "delay": 0}
        case "extend":
            return {**some, "now": 0, "duration": 1_000, "too_late": 1}
        case "held":
            return {"job": leased[0], "fence": 0, "now": 0}
        case "expired":
            return {"jobs": leased}
        case "put_back":
            return {"jobs": leased, "dues": [1] * BATCH, "attempts": [0] * BATCH, "errors": ["e"] * BATCH}
        case "bury":
            return {"jobs": leased, "dieds": [1] * BATCH, "errors": ["e"] * BATCH, "unleased": 0, "room": None}
        case "count":
            return dict.fromkeys(FIGURES, 1)
        case "put_one":
            return {
                "id": "new", "payload": b"x", "priority": 0, "attempt": 5, "at": 0, "deadline": None, "lifetime": None,
                "latest": 2**62, "bell": 1, "channel": "bell",
            }  # fmt: skip
        case "put":
            return {
                "ids": [f"new{n}" for n in range(BATCH)], "payloads": [b"x"] * BATCH, "priorities": [0] * BATCH,
                "attempts": [5] * BATCH, "absolutes": [False] * BATCH, "ats": [0] * BATCH, "deadlines": [None] * BATCH,
                "enqueueds": [None] * BATCH, "lifetime": None, "latest": 2**62, "bell": 1, "channel": "bell",
            }  # fmt: skip
        case "exists":
            return {"ids": [f"job{n}" for n in range(1, BATCH + 1)]}
        case "find" | "cancel" | "find_dead":
            return {"id": "job7"}
        case "remove":
            return {"jobs": leased}
        case "replay":
            return {"ids": None, "limit": BATCH, "today": 1}
        case "archived":
            return {"name": "default", "id": None, "limit": BATCH}
        case "set_paused":
            return {"paused": True}
        case _:
            return {"limit": BATCH, "after": 0, "keep": 1, "lifetime": None}


def ignored(nodes: list[str]) -> list[str]:
    """Scans of what may be large: all rows of a table, or its rows in another order than the index gives them."""
    small = ("Seq Scan clock", "Seq Scan queues", "Seq Scan deltas")
    wide = ("Seq Scan", "Hash Join", "Merge Join", "Gather", "Bitmap")
    return [each for each in nodes if each.startswith(wide) and each not in small]


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("take", "jobs_line"),
        ("ack", "jobs_pkey"),
        ("ack_claim", "jobs_pkey"),
        ("ack_claim", "leases_until"),
        ("ack_archive", "jobs_pkey"),
        ("release", "jobs_pkey"),
        ("extend", "jobs_pkey"),
        ("held", "jobs_pkey"),
        ("expired", "jobs_pkey"),
        ("put_back", "jobs_pkey"),
        ("bury", "jobs_pkey"),
        ("remove", "jobs_pkey"),
        ("put", ""),
        ("put_one", ""),
        ("promote", "jobs_due"),
        ("lapsed", "leases_until"),
        ("look", "jobs_line"),
        ("stats", "jobs_line"),
        ("find", "jobs_id"),
        ("cancel", "jobs_id"),
        ("exists", "jobs_id"),
        ("size", ""),
        ("prune_dead", "dead_died"),
        ("prune_archive", "archive_done"),
        ("dead", "dead_"),
        ("find_dead", "dead_id"),
        ("take_dead", "dead_"),
        ("archived", "archive_done"),
        ("replay", "dead_"),
        ("count", ""),
    ],
)
def test_a_statement_reads_no_more_when_very_many_wait_and_have_passed(
    request: pytest.FixtureRequest, pair: tuple[Explained, Explained], name: str, index: str, mode: str
) -> None:
    few, many = (each.plan(name, mode, values_of(name, each)) for each in pair)
    assert not index or any(index in each for each in many.nodes), many.nodes
    assert not ignored(many.nodes), many.nodes
    # The figures are looked for from the very front of the line; until vacuum comes by, the index has entries of what
    # has passed there, a few hundred on a page.
    passed = MANY // 200 if name == "stats" and "VACUUM" not in request.node.name else 0
    assert many.pages <= 2 * few.pages + 50 + passed, (few, many)
