"""Headrace: a job queue you can trust. The same rules in memory, in an SQLite file and in PostgreSQL."""

from .connect import connect, connect_async
from .errors import (
    ConfigError,
    DuplicateJob,
    HeadraceError,
    InvalidJob,
    LeaseLost,
    QueueClosed,
    QueueFull,
    StorageFull,
    Unavailable,
    Unsupported,
)
from .job import Cancel, Discard, Job, Retry, Snooze, State, Stats
from .overflow import Block, DropNewest, DropOldest, Reject
from .queue import AsyncQueue, Capabilities, Inspect, Queue

__all__ = [
    "AsyncQueue",
    "Block",
    "Cancel",
    "Capabilities",
    "ConfigError",
    "Discard",
    "DropNewest",
    "DropOldest",
    "DuplicateJob",
    "HeadraceError",
    "Inspect",
    "InvalidJob",
    "Job",
    "LeaseLost",
    "Queue",
    "QueueClosed",
    "QueueFull",
    "Reject",
    "Retry",
    "Snooze",
    "State",
    "Stats",
    "StorageFull",
    "Unavailable",
    "Unsupported",
    "connect",
    "connect_async",
]
