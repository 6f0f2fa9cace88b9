"""The settings of a pool: checked at construction, frozen from then on."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from .. import check
from ..errors import ConfigError
from .events import Listener
from .heartbeat import interval_for
from .retry import Retries, RetryPolicy, retries


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What ``Pool`` was asked for, in the form in which it is used."""

    workers: int
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

    @classmethod
    def make(
        cls,
        *,
        queue: str,
        lease: float,
        workers: int,
        retry: RetryPolicy | Callable[[int], float] | str | None,
        timeout: float | None,
        drain: float,
        name: str | None,
        heartbeat: float | None,
        listener: Listener | None,
        zombies: int | None,
        unserved_grace: float,
    ) -> Options:
        """Check what was given; ConfigError names the setting, the value and the range."""
        check.whole("workers", workers, 1, 100_000)
        if timeout is not None:
            check.duration("timeout", timeout, zero=False)
        check.duration("drain", drain)
        check.duration("unserved_grace", unserved_grace)
        if name is not None and not isinstance(name, str):
            raise ConfigError(f"name: {name!r} is not a text")
        if listener is not None and not callable(getattr(listener, "on", None)):
            raise ConfigError(f"listener: {listener!r} has no method on(event)")
        if zombies is None:
            zombies = max(16, 2 * workers)
        return cls(
            workers=workers,
            retry=retries(retry),
            timeout=timeout,
            drain=drain,
            name=name or f"headrace-{queue}",
            interval=interval_for(lease, heartbeat),
            listener=listener,
            zombies=check.whole("zombies", zombies, 0, 100_000),
            unserved_grace=unserved_grace,
        )
