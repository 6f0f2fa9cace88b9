"""The back doors of the backends: what is stored, read as it lies."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from headrace.job import State
from headrace.queue import Queue
from headrace.record import Record
from headrace.testing.raw import RawJob, RawState


def memory_state(queue: Queue) -> RawState:
    store: Any = queue.store  # type: ignore[attr-defined]  # not part of the contract: this is the back door
    core = store._core
    with store._lock:
        now = store._time.now()
        heaps = {State.READY: core.waiting, State.DELAYED: core.delayed, State.INFLIGHT: core.leases}
        living = {state: {entry[2] for entry in heap._entries if heap._alive(entry)} for state, heap in heaps.items()}
        ages = {entry[2] for entry in core.ages._entries if core.ages._alive(entry)}
        assert ages == living[State.READY], "the heap of ages and the line of the ready disagree"

        def raw(record: Record, places: list[State]) -> RawJob:
            timed = record.state in (State.DELAYED, State.INFLIGHT)
            return RawJob(
                id=record.id,
                seq=record.seq,
                places=tuple(places),
                attempt=record.attempt,
                fence=record.fence,
                enqueued=record.enqueued,
                left=record.due - now if timed else None,
            )

        return RawState(
            jobs=tuple(
                raw(record, [state for state, names in living.items() if record.id in names])
                for record in core.jobs.values()
            ),
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
