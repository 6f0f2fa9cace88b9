"""The settings of a pool: checked at construction, frozen from then on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from .. import check
from ..errors import ConfigError
from . import ahead
from .balance import MOST, Balance
from .events import Listener
from .heartbeat import interval_for
from .recycle import Recycle
from .retry import Retries, RetryPolicy, retries
from .schedule import Schedule

WORKERS = 8
"""How many there are where nobody says."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What ``Pool`` was asked for, in the form in which it is used."""

    workers: int
    """How many there are at first."""
    balance: Balance | None
    """None: as many as there are at first, all the time."""
    schedule: Schedule | None
    recycle: Recycle
    retry: Retries
    timeout: float | None
    drain: float
    name: str
    interval: float
    """Seconds between two heartbeats."""
    listener: Listener | None
    zombies: int
    """How many handlers may be written off and still running before the pool gives up."""
    unserved_grace: float
    prefetch: int
    """How many jobs may be fetched ahead of those that begin at once."""

    @classmethod
    def make(
        cls,
        *,
        queue: str,
        lease: float,
        workers: int | None,
        balance: Balance | None,
        schedule: Schedule | None,
        recycle_jobs: int | None,
        recycle_memory: int | None,
        retry: RetryPolicy | Callable[[int], float] | str | None,
        timeout: float | None,
        drain: float,
        name: str | None,
        heartbeat: float | None,
        listener: Listener | None,
        zombies: int | None,
        unserved_grace: float,
        prefetch: int | Literal["auto"],
        durable: bool,
    ) -> Options:
        """Check what was given; ConfigError names the setting, the value and the range."""
        balance = _balance(workers, balance, schedule)
        if workers is None:
            workers = WORKERS
        most = workers if balance is None else schedule.max_over(balance) if schedule else balance.max
        if timeout is not None:
            check.duration("timeout", timeout, zero=False)
        check.duration("drain", drain)
        check.duration("unserved_grace", unserved_grace)
        if name is not None and not isinstance(name, str):
            raise ConfigError(f"name: {name!r} is not a text")
        if listener is not None and not callable(getattr(listener, "on", None)):
            raise ConfigError(f"listener: {listener!r} has no method on(event)")
        if prefetch == "auto":
            prefetch = ahead.MOST if durable else 0
        if zombies is None:
            zombies = max(16, 2 * most)
        return cls(
            workers=workers,
            balance=balance,
            schedule=schedule,
            recycle=Recycle.make(recycle_jobs, recycle_memory),
            retry=retries(retry),
            timeout=timeout,
            drain=drain,
            name=name or f"headrace-{queue}",
            interval=interval_for(lease, heartbeat),
            listener=listener,
            zombies=check.whole("zombies", zombies, 0, 100_000),
            unserved_grace=unserved_grace,
            prefetch=check.whole("prefetch", prefetch, 0, 100_000),
        )


def _balance(workers: int | None, balance: Balance | None, schedule: Schedule | None) -> Balance | None:
    """The limits that hold outside of the schedule; a fixed number is both of them."""
    if workers is not None:
        check.whole("workers", workers, 1, MOST)
        if balance is not None:
            raise ConfigError(f"workers: {workers!r} is a fixed number, and balance= is none; give one of the two")
    if balance is not None and not isinstance(balance, Balance):
        raise ConfigError(f"balance: {balance!r} is not of the form Balance(min=1, max=8)")
    if schedule is None:
        return balance
    if not isinstance(schedule, Schedule):
        raise ConfigError(f'schedule: {schedule!r} is not of the form Schedule({{"08:00-12:00": Hours(min=1, max=8)}})')
    schedule.daily_max  # noqa: B018  # raises ConfigError where it is empty
    return balance or Balance(min=workers or WORKERS, max=workers or WORKERS)
