"""The worker pool: dequeue, call the handler, settle."""

from __future__ import annotations

from .call import Call, Handler, Resolver, Unserved, kind_of
from .context import Context, current
from .events import Event, Finished, Listener, PoolState, Started
from .health import Health, PoolFailed, Summary
from .pool import Pool
from .retry import (
    Constant,
    Exponential,
    Fibonacci,
    Jitter,
    Linear,
    Logarithmic,
    Polynomial,
    Quadratic,
    RetryPolicy,
)

__all__ = [
    "Call",
    "Constant",
    "Context",
    "Event",
    "Exponential",
    "Fibonacci",
    "Finished",
    "Handler",
    "Health",
    "Jitter",
    "Linear",
    "Listener",
    "Logarithmic",
    "Polynomial",
    "Pool",
    "PoolFailed",
    "PoolState",
    "Quadratic",
    "Resolver",
    "RetryPolicy",
    "Started",
    "Summary",
    "Unserved",
    "current",
    "kind_of",
]
