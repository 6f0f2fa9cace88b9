"""Headrace: a job queue you can trust. The same rules in memory, in an SQLite file and in PostgreSQL."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from .app import App
    from .pool import Balance, Context, Hours, Pool, Schedule

# A producer that only enqueues needs neither asyncio's machinery nor the pool's: these come when first used.
_LATER = {
    "App": "headrace.app",
    **dict.fromkeys(("Balance", "Context", "Hours", "Pool", "Schedule"), "headrace.pool"),
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'headrace' has no attribute {name!r}")
    value = getattr(import_module(_LATER[name]), name)
    globals()[name] = value
    return value


__all__ = [
    "App",
    "AsyncQueue",
    "Balance",
    "Block",
    "Cancel",
    "Capabilities",
    "ConfigError",
    "Context",
    "Discard",
    "DropNewest",
    "DropOldest",
    "DuplicateJob",
    "HeadraceError",
    "Hours",
    "Inspect",
    "InvalidJob",
    "Job",
    "LeaseLost",
    "Pool",
    "Queue",
    "QueueClosed",
    "QueueFull",
    "Reject",
    "Retry",
    "Schedule",
    "Snooze",
    "State",
    "Stats",
    "StorageFull",
    "Unavailable",
    "Unsupported",
    "connect",
    "connect_async",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
