"""The back doors of the backends: what is stored, read as it lies."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from headrace.job import State
from headrace.queue import Queue
from headrace.record import Record
from headrace.testing.raw import RawJob, RawState


def memory_state(queue: Queue) -> RawState:
    """Walks the lines from end to end: what stands in none of them is nowhere, whatever its record says."""
    store: Any = queue.store  # type: ignore[attr-defined]  # not part of the contract: this is the back door
    core = store._core
    with store._lock:
        now = store._time.now()
        ready, leases = core.ready, core.leases
        lines = {
            State.READY: [
                *(record for bucket in ready.buckets for record in bucket.items if record is not None),
                *(core.jobs[entry[2]] for entry in set(ready.waiting.entries) if ready.waiting.alive(entry)),
                *(record for entry in ready.late for record in entry[2].records),
            ],
            State.DELAYED: core.delayed.all(),
            State.INFLIGHT: [
                *(record for record in leases.line.items if record is not None),
                *(core.jobs[entry[2]] for entry in set(leases.others.entries) if leases.others.alive(entry)),
            ],
        }
        places: dict[str, list[State]] = {}
        for state, records in lines.items():
            for record in records:
                places.setdefault(record.id, []).append(state)
        ages = {entry[2] for entry in ready.ages.entries if ready.ages.alive(entry)}
        heap = {entry[2] for entry in ready.waiting.entries if ready.waiting.alive(entry)}
        assert ages == heap, "the heap of ages and that of the ready disagree"

        def raw(record: Record, places: list[State]) -> RawJob:
            return RawJob(
                id=record.id,
                seq=record.seq,
                places=tuple(places),
                attempt=record.attempt,
                fence=record.fence,
                enqueued=record.enqueued,
                left=record.due - now if places and places[0] in (State.DELAYED, State.INFLIGHT) else None,
            )

        return RawState(
            jobs=tuple(raw(record, places.get(record.id, [])) for record in core.jobs.values()),
            dead=tuple(raw(record, [record.state]) for record in core.dead.values()),
            ids=tuple(core.jobs),
        )


JOBS = "SELECT headrace_jobs.* FROM headrace_jobs JOIN headrace_queues USING (queue) WHERE name = ? ORDER BY pk"
DEAD = "SELECT headrace_dead.* FROM headrace_dead JOIN headrace_queues USING (queue) WHERE name = ? ORDER BY pk"


def sqlite_state(queue: Queue) -> RawState:
    """By a connection of its own, as another process would read the file."""
    store: Any = queue.store  # type: ignore[attr-defined]  # as above
    with closing(sqlite3.connect(f"file:{store._database.path}?mode=ro", uri=True)) as file:
        file.row_factory = sqlite3.Row
        now = queue.settings.clock.steady() + file.execute("SELECT anchor FROM headrace_clock").fetchone()[0]
        jobs = file.execute(JOBS, [queue.settings.queue]).fetchall()
        dead = file.execute(DEAD, [queue.settings.queue]).fetchall()

    def raw(row: sqlite3.Row, state: State) -> RawJob:
        return RawJob(
            id=row["id"],
            seq=row["pk"],
            places=(state,),
            attempt=row["attempt"],
            fence=row["fence"],
            enqueued=row["enqueued"],
            left=row["due"] - now if state in (State.DELAYED, State.INFLIGHT) else None,
        )

    states = (State.DELAYED, State.READY, State.INFLIGHT)
    return RawState(
        jobs=tuple(raw(row, states[row["state"]]) for row in jobs),
        dead=tuple(raw(row, State.DEAD) for row in dead),
        ids=tuple(row["id"] for row in jobs),
    )


def postgres_state(queue: Queue, database: psycopg.Connection[dict[str, Any]]) -> RawState:
    """By a connection that is not the queue's, as another machine would read it."""
    store: Any = queue.store  # type: ignore[attr-defined]  # as above
    schema = sql.Identifier(store.schema)

    def rows(query: LiteralString) -> list[dict[str, Any]]:
        mine = sql.SQL("(SELECT queue FROM {schema}.queues WHERE name = %s)").format(schema=schema)
        return database.execute(sql.SQL(query).format(schema=schema, mine=mine), [queue.settings.queue]).fetchall()

    with database.transaction():
        database.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        (clock,) = rows("SELECT anchor FROM {schema}.clock, {mine} AS q")
        now = queue.settings.clock.steady() + clock["anchor"]
        jobs = rows("SELECT * FROM {schema}.jobs WHERE queue = {mine} ORDER BY pk")
        dead = rows("SELECT * FROM {schema}.dead WHERE queue = {mine} ORDER BY pk")
        leases = rows("SELECT until, unnest(jobs) AS pk FROM {schema}.leases WHERE queue = {mine}")
    watched = {(row["pk"], row["until"]) for row in leases}

    def raw(row: dict[str, Any]) -> RawJob:
        if row["until"]:
            assert (row["pk"], row["until"]) in watched, f"I2: nobody watches the lease of {row['id']!r}"
        state = State.INFLIGHT if row["until"] else State.DELAYED if row["delayed"] else State.READY
        places = (state, State.DELAYED) if row["until"] and row["delayed"] else (state,)
        return RawJob(
            id=row["id"],
            seq=row["pk"],
            places=places,
            attempt=row["attempt"],
            fence=row["fence"],
            enqueued=row["enqueued"],
            left={State.INFLIGHT: row["until"] - now, State.DELAYED: row["due"] - now}.get(state),
        )

    return RawState(
        jobs=tuple(raw(row) for row in jobs),
        dead=tuple(
            RawJob(
                id=row["id"],
                seq=row["pk"],
                places=(State.DEAD,),
                attempt=row["attempt"],
                fence=row["fence"],
                enqueued=row["enqueued"],
            )
            for row in dead
        ),
        ids=tuple(row["id"] for row in jobs),
    )
