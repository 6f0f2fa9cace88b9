"""PostgreSQL: Headrace beside other queues that live there, each in a process of its own, by default durability."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial

import psycopg

import headrace

from . import _pg_statements
from ._harness import Bench, Case, Ratio, Scale, per_job, stopwatch
from ._pg import child, database, pgbench, server
from ._pg_child import PAYLOAD, WARM
from ._pg_systems import BULK, OURS, SYSTEMS

DRAIN = {OURS: 100_000, "pgqueuer": 50_000, "procrastinate": 1_500, "chancy": 10_000, "oban": 10_000, "awa": 20_000}
"""Jobs, so that each works for some seconds."""
MANY = {OURS: 100_000, "pgqueuer": 50_000, "procrastinate": 20_000, "chancy": 10_000, "oban": 10_000, "awa": 50_000}
COMPILED = ("awa",)
"""Peers whose core is not Python."""
PEERS = [system for system in SYSTEMS if system != OURS]
PYTHON = [system for system in PEERS if system not in COMPILED]

BARE = {1: "pgbench: our statements, 1 client", 2: "pgbench: our statements, 2 clients"}
CREATE = "create table floor (id bigint generated always as identity primary key, payload bytea not null)"
INSERT = "insert into floor (payload) values (convert_to(repeat('x', 100), 'UTF8'))"
BLOCKING = f"{OURS}, blocking call"
FLOORS = "psycopg: insert a row, commit", "pgbench: insert a row, commit"


def benches(scale: Scale) -> Iterator[Bench]:
    note = server()
    counts = {system: scale.count(count) for system, count in DRAIN.items()}
    bare = [Case(name, partial(_pg_statements.drained, counts[OURS], clients)) for clients, name in BARE.items()]
    yield Bench(
        "PostgreSQL: drain by one worker process, no-op async handler",
        "µs a job",
        [*[Case(system, partial(drained, system, counts[system])) for system in SYSTEMS], *bare],
        [
            Ratio("best peer in Python / ours", PYTHON, [OURS], at_least=8),
            Ratio("compiled peer / ours", COMPILED, [OURS], at_least=1),
            Ratio("our rate, of the best pgbench", list(BARE.values()), [OURS], at_least=0.7),
        ],
        note,
    )
    counts = {system: scale.count(count) for system, count in MANY.items()}
    yield Bench(
        f"PostgreSQL: enqueue in calls of {BULK}",
        "µs a job",
        [Case(system, partial(enqueued, system, counts[system], "bulk")) for system in SYSTEMS],
        [Ratio("best peer / ours", PEERS, [OURS], at_least=3)],
    )
    few = scale.count(1_000)
    yield Bench(
        "PostgreSQL: enqueue one by one, each committed",
        "µs a job",
        [
            *[Case(system, partial(enqueued, system, few, "one")) for system in SYSTEMS],
            Case(BLOCKING, partial(blocking, few)),
            Case(FLOORS[0], partial(psycopg_floor, few)),
            Case(FLOORS[1], partial(pgbench_floor, few)),
        ],
        [
            Ratio("best peer / ours", PEERS, [OURS], at_least=1),
            Ratio("best peer / our blocking call", PEERS, [BLOCKING], at_least=1),
            *[Ratio("ours / a bare insert", [OURS], [floor]) for floor in FLOORS],
        ],
    )


def drained(system: str, count: int) -> float:
    with database() as url:
        return per_job(count, child(system, url, "install", f"bulk={count}", f"drain={count}")["drain"])


def enqueued(system: str, count: int, call: str) -> float:
    with database() as url:
        return per_job(count, child(system, url, "install", f"{call}={count}")[call])


def blocking(count: int) -> float:
    """The call for those who have no event loop: there is no thread between it and the server."""
    with database() as url, headrace.connect(url, capacity=10_000_000) as jobs:
        for _ in range(WARM):
            jobs.enqueue(headrace.Job(PAYLOAD.encode()))
        with stopwatch() as seconds:
            for _ in range(count):
                jobs.enqueue(headrace.Job(PAYLOAD.encode()))
        return per_job(count, seconds())


def psycopg_floor(count: int) -> float:
    with database() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute(CREATE)
        with stopwatch() as seconds:
            for _ in range(count):
                connection.execute(INSERT)
        return per_job(count, seconds())


def pgbench_floor(count: int) -> float:
    with database() as url, tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        with psycopg.connect(url) as connection:
            connection.execute(CREATE)
        script.write(INSERT + ";\n")
        script.flush()
        return per_job(count, pgbench(url, script.name, count))
