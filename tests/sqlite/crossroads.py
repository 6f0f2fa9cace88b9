"""One queue in which every kind of job waits, and every call that can be made on it: for faults at each step."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlite_files import drain, open_at

from headrace.errors import LeaseLost
from headrace.job import Job
from headrace.queue import Queue
from headrace.testing import VirtualClock

LEASE = 30.0


@dataclass
class Scene:
    """A file as a clean process left it, the leases that were given, and the time."""

    file: Path
    clock: VirtualClock = field(default_factory=VirtualClock)
    held: dict[str, Job] = field(default_factory=dict)

    def copy(self, target: Path) -> Path:
        for suffix in ("-wal", "-shm"):
            target.with_name(target.name + suffix).unlink(missing_ok=True)
        shutil.copy(self.file, target)
        return target

    def open(self, path: Path, **settings: Any) -> Queue:
        return open_at(path, **{"clock": self.clock, "lease": LEASE, "max_attempts": 3, "capacity": 20, **settings})


def build(file: Path, later: float = 0.0) -> Scene:
    """Ready, delayed, in flight (with attempts left, without, and asked to cancel) and dead jobs, two each."""
    scene = Scene(file)
    with scene.open(file) as queue:
        queue.enqueue_many([Job(b"x", id=f"dead{n}") for n in (1, 2)])
        for job in queue.dequeue_many(2):
            queue.bury(job, error="the first")
        queue.enqueue_many([Job(b"x", id=f"held{n}") for n in (1, 2)])
        queue.enqueue_many([Job(b"x", id=f"last{n}", max_attempts=1) for n in (1, 2)])
        queue.enqueue(Job(b"x", id="unwanted"))
        scene.held = {job.id: job for job in queue.dequeue_many(5)}
        assert queue.cancel("unwanted") is False
        queue.enqueue_many([Job(b"x", id=f"late{n}", delay=10.0) for n in (1, 2)])
        queue.enqueue_many([Job(b"x", id=f"ready{n}", priority=n) for n in (1, 2)])
    scene.clock.advance(later)
    return scene


def reopen(scene: Scene, path: Path) -> None:
    scene.open(path).close()


def on(call: Callable[[Queue, dict[str, Job]], object], **settings: Any) -> Callable[[Scene, Path], None]:
    """A call on a handle that is opened for it, and closed behind it."""

    def act(scene: Scene, path: Path) -> None:
        with scene.open(path, **settings) as queue:
            call(queue, scene.held)

    return act


def step_calendar(scene: Scene, path: Path) -> None:
    with scene.open(path) as queue:
        scene.clock.step(3600)
        try:
            queue.enqueue(Job(b"x", id="new"))
        finally:
            scene.clock.step(-3600)


NEW = [Job(b"x", id=f"new{n}") for n in range(3)]

# name: (seconds that have passed since the scene was built, the call)
CALLS: dict[str, tuple[float, Callable[[Scene, Path], None]]] = {
    "reopen": (0, reopen),
    "enqueue": (0, on(lambda q, held: q.enqueue(Job(b"x", id="new")))),
    "enqueue_delayed": (0, on(lambda q, held: q.enqueue(Job(b"x", id="new", delay=5.0)))),
    "enqueue_many": (0, on(lambda q, held: q.enqueue_many(NEW))),
    "enqueue_drop_oldest": (0, on(lambda q, held: q.enqueue_many(NEW), capacity=9, overflow="drop_oldest")),
    "enqueue_drop_newest": (0, on(lambda q, held: q.enqueue_many(NEW), capacity=10, overflow="drop_newest")),
    "dequeue": (0, on(lambda q, held: q.dequeue(timeout=0))),
    "dequeue_many": (0, on(lambda q, held: q.dequeue_many(10, timeout=0))),
    "ack": (0, on(lambda q, held: q.ack(held["held1"]))),
    "ack_many": (0, on(lambda q, held: q.ack_many([held["held1"], held["last1"]]))),
    "nack": (0, on(lambda q, held: q.nack(held["held1"], error="again"))),
    "nack_delayed": (0, on(lambda q, held: q.nack(held["held1"], delay=7.0, error="again"))),
    "nack_to_dead": (0, on(lambda q, held: q.nack(held["last1"], error="over"))),
    "nack_cancelled": (0, on(lambda q, held: q.nack(held["unwanted"], error="over"))),
    "release": (0, on(lambda q, held: q.release(held["held1"]))),
    "release_delayed": (0, on(lambda q, held: q.release(held["held1"], delay=7.0))),
    "release_many": (0, on(lambda q, held: q.release_many(list(held.values())))),
    "bury": (0, on(lambda q, held: q.bury(held["held1"], error="no"))),
    "bury_dropped": (0, on(lambda q, held: q.bury(held["held1"], error="no"), dead_capacity=2)),
    "extend": (0, on(lambda q, held: q.extend_many(list(held.values()), 60.0))),
    "cancel_ready": (0, on(lambda q, held: q.cancel("ready1"))),
    "cancel_delayed": (0, on(lambda q, held: q.cancel("late1"))),
    "cancel_running": (0, on(lambda q, held: q.cancel("held1"))),
    "cancel_own": (0, on(lambda q, held: q.cancel(held["held1"]))),
    "promote": (15, on(lambda q, held: q.stats())),
    "promote_and_dequeue": (15, on(lambda q, held: q.dequeue_many(10, timeout=0))),
    "expire": (LEASE, on(lambda q, held: q.stats())),
    "expire_and_replay": (LEASE, on(lambda q, held: q.replay())),
    "late_ack": (LEASE, on(lambda q, held: _lost(lambda: q.ack(held["held1"])))),
    "replay": (0, on(lambda q, held: q.replay())),
    "replay_ids": (0, on(lambda q, held: q.replay(ids=["dead2"]))),
    "take_dead": (0, on(lambda q, held: q.take_dead(2))),
    "pause": (0, on(lambda q, held: q.pause())),
    "calendar": (2, step_calendar),
}


def _lost(call: Callable[[], object]) -> None:
    with pytest.raises(LeaseLost):
        call()


def run_dry(scene: Scene, path: Path) -> list[str]:
    """A clean process does all that is left, late and lapsed jobs too; every id that came out, done or dead."""
    later = VirtualClock(scene.clock.now() + timedelta(days=1))
    with scene.open(path, clock=later) as queue:
        queue.resume()
        done = [job.id for job in drain(queue)]
        dead = [job.id for job in queue.take_dead(1000)]
        stats = queue.stats()
    assert stats.size == stats.dead == stats.unaccounted == 0
    return done + dead
