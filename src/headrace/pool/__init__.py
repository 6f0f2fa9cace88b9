"""The worker pool: dequeue, call the handler, settle."""

from __future__ import annotations

from .balance import Balance, Crew, Limits, Load, Move
from .call import Call, Handler, Resolver, Unserved, kind_of
from .context import Context, current
from .events import Balanced, Event, Finished, Listener, PoolState, Started
from .handlers import async_chain, chain, transit
from .health import Health, PoolFailed, Summary
from .hours import Hours
from .many import run_pools, run_pools_async
from .outcome import Forward
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
from .schedule import Schedule

__all__ = [
    "Balance",
    "Balanced",
    "Call",
    "Constant",
    "Context",
    "Crew",
    "Event",
    "Exponential",
    "Fibonacci",
    "Finished",
    "Forward",
    "Handler",
    "Health",
    "Hours",
    "Jitter",
    "Limits",
    "Linear",
    "Listener",
    "Load",
    "Logarithmic",
    "Move",
    "Polynomial",
    "Pool",
    "PoolFailed",
    "PoolState",
    "Quadratic",
    "Resolver",
    "RetryPolicy",
    "Schedule",
    "Started",
    "Summary",
    "Unserved",
    "async_chain",
    "chain",
    "current",
    "kind_of",
    "run_pools",
    "run_pools_async",
    "transit",
]
