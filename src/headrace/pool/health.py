"""Whether a pool really works: judged by when its loops last got something done, not by its being there."""

from __future__ import annotations

import msgspec

from ..clock import FAR, SECOND, Clock
from ..errors import HeadraceError


class PoolFailed(HeadraceError):
    """The pool cannot do its work any more and has stopped; the message says why. Start a new one."""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How a pool is, at one moment."""

    ok: bool
    reasons: tuple[str, ...] = ()
    """Why it is not ok."""
    phase: str
    active: int = 0
    """Workers that take jobs."""
    asleep: int = 0
    """Workers that take none, and can be woken at once."""
    running: int = 0
    """Jobs that are held: running, being settled, or fetched ahead. Without the latter it is more than ``active`` only
    while busy workers are to retire."""
    ahead: int = 0
    """Of these, jobs that were fetched ahead and have not begun."""
    zombies: int = 0
    """Handlers that were written off and still run."""
    fetch_age: float | None = None
    """Seconds since the store last answered a fetch; None before the first. A busy pool does not fetch."""
    heartbeat_age: float | None = None
    """Seconds since the last complete heartbeat."""
    loop_lag: float = 0.0
    """For how many seconds the event loop has been blocked."""

    @property
    def idle(self) -> int:
        """Active workers without a job."""
        return max(0, self.active - self.running + self.ahead)

    @property
    def size(self) -> int:
        """Workers that are there, those included that retire when their job has ended."""
        return max(self.active + self.asleep, self.running - self.ahead)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a pool did, when it has stopped."""

    reason: str
    """Why it stopped."""
    forced: bool
    """Whether it was not left the time to drain."""
    picked_up: int
    acked: int
    nacked: int
    released: int
    buried: int
    cancelled: int
    lost: int
    """Attempts whose lease was lost, or could not be settled in time."""
    left: int
    """Jobs that could not be given back: they return when their leases are over."""


class Pulse:
    """When a loop last got something done, and since when it waits for an answer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._done: int | None = None
        self._since = FAR

    def begin(self) -> None:
        self._since = self._clock.steady()

    def end(self, done: bool = True) -> None:
        self._since = FAR
        if done:
            self._done = self._clock.steady()

    @property
    def age(self) -> float | None:
        """Seconds since it last got something done; None: not yet."""
        return None if self._done is None else (self._clock.steady() - self._done) / SECOND

    @property
    def waiting(self) -> float:
        """Seconds for which it has waited for an answer by now; 0.0 when it does not."""
        return max(0.0, (self._clock.steady() - self._since) / SECOND)
