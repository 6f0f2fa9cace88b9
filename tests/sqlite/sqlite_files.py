"""Handles on a test's file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import headrace
from headrace.job import Job
from headrace.queue import Queue


def open_at(path: Path, **settings: Any) -> Queue:
    """Fast: a killed process loses nothing by ``normal``, only a power cut would."""
    return headrace.connect(f"sqlite:///{path}", **{"synchronous": "normal", **settings})


def lease(queue: Queue, timeout: float = 0) -> Job:
    """The job that must be there now, or come in time."""
    job = queue.dequeue(timeout=timeout)
    assert job is not None, "nothing was ready"
    return job


def drain(queue: Queue, timeout: float = 0) -> list[Job]:
    """Take and ack all that is ready, in order."""
    taken = []
    while jobs := queue.dequeue_many(100, timeout=timeout):
        queue.ack_many(jobs)
        taken += jobs
    return taken
