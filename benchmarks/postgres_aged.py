"""PostgreSQL: a drain after a million jobs have passed, with a million waiting, and under a snapshot held open.

Wants a server with autovacuum on, as every server in use has it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import psycopg

from ._harness import Bench, Case, Ratio, Scale, per_job
from ._pg import child, database, server
from ._pg_systems import OURS

FRESH, PASSED, DEEP, PINNED = "fresh", "jobs passed before", "jobs waiting behind", "under an old snapshot"
MINUTE = 60.0


def benches(scale: Scale) -> Iterator[Bench]:
    note = server()
    count, million = scale.count(100_000), scale.count(1_000_000)
    seconds = MINUTE / 10 if scale.quick else MINUTE
    cycle = f"bulk={count}", f"drain={count}"
    with ExitStack() as stack:
        urls = {name: stack.enter_context(database()) for name in (PASSED, DEEP, PINNED)}
        child(OURS, urls[PASSED], "install", *cycle * (million // count))
        child(OURS, urls[DEEP], "install", f"bulk={million}")
        stack.enter_context(old_snapshot(urls[PINNED]))
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            child(OURS, urls[PINNED], "install", *cycle)
        yield Bench(
            f"PostgreSQL: drain {count:,} jobs",
            "µs a job",
            [
                Case(FRESH, partial(fresh, count)),
                Case(f"{million:,} {PASSED}", partial(drained, urls[PASSED], count, cycle)),
                Case(f"{million:,} {DEEP}", partial(drained, urls[DEEP], count, cycle[::-1])),
                Case(f"{seconds:g} s {PINNED}", partial(drained, urls[PINNED], count, cycle)),
            ],
            [
                Ratio(f"rate {state}, of the fresh one", [FRESH], [f"{much} {state}"], at_least=0.75)
                for much, state in ((f"{million:,}", PASSED), (f"{million:,}", DEEP), (f"{seconds:g} s", PINNED))
            ],
            note,
        )


def fresh(count: int) -> float:
    with database() as url:
        return drained(url, count, ("install", f"bulk={count}", f"drain={count}"))


def drained(url: str, count: int, steps: tuple[str, ...]) -> float:
    return per_job(count, child(OURS, url, *steps)["drain"])


@contextmanager
def old_snapshot(url: str) -> Iterator[None]:
    """Nothing that dies from now on may be vacuumed away: what a backup or a forgotten session does."""
    with psycopg.connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("select count(*) from pg_class")
        yield
        connection.rollback()
