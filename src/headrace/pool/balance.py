"""How many workers a pool should have: a pure function of its settings and its load.

A worker is **active** (it takes jobs), **asleep** (it takes none, and can be woken at once) or not there. Active ones
wake and fall asleep by how full the queue is, or, where ``target_age`` is set, by what that goal takes (``goal.py``).
Who has slept for ``sleep_interval`` stops. The time in between is there because loads flutter.

By fullness, with rate = size / capacity:

    rate >= wakeup_factor    wake as many again as are active
    rate <= sleep_factor     put up to half of them to sleep
    in between               change nothing: that gap is what keeps the two from chasing each other

Two things are unlike the queues this is modelled on, which start one worker a heartbeat, and count what waits only.

**Doubling.** One more a heartbeat takes half a minute from 2 workers to 32, and a burst is over by then, or the queue
is full. Halving on the way down and doubling on the way up take equally long, and five heartbeats are enough.

**Nobody for nothing.** The size of our queues includes jobs that are delayed or run already, which more workers do
not make fewer. So workers wake only where there are more ready jobs than idle workers, and fall asleep only where there
are fewer: never both, so nothing flaps at a boundary. Where no job is ready at all, the idle fall asleep however full
the queue is. The busy never do, for they are needed. A ready job always finds somebody, even with ``min=0``.
"""

from __future__ import annotations

import msgspec

from .. import check
from ..clock import SECOND
from ..errors import ConfigError
from . import goal

MOST = 100_000
"""The most workers a pool may have."""
HIGHEST = 0.999999
"""A factor of 1 would mean: only when it is too late."""


def check_limits(prefix: str, low: object, high: object, wakeup: object, sleep: object) -> None:
    """Raise ConfigError where these cannot be limits. ``prefix`` goes before the names: ``"balance: "``."""
    most = check.whole(f"{prefix}max", high, 1, MOST)
    if check.whole(f"{prefix}min", low, 0, MOST) > most:
        raise ConfigError(f"{prefix}min: {low!r} is more than max, {high!r}; 0 <= min <= max")
    factors = [factor(f"{prefix}wakeup_factor", wakeup), factor(f"{prefix}sleep_factor", sleep)]
    if factors[0] < factors[1]:
        raise ConfigError(f"{prefix}wakeup_factor: {wakeup!r} is less than sleep_factor, {sleep!r}")


def factor(name: str, value: object) -> float:
    """A share of the capacity, from 0 to 0.999999."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= HIGHEST:
        raise ConfigError(f"{name}: {value!r} is not a number from 0 to {HIGHEST}")
    return value


class Limits(msgspec.Struct, frozen=True):
    """What is in force now: the pool's own, or those of the hour."""

    min: int
    max: int
    wakeup_factor: float = 0.75
    sleep_factor: float = 0.5

    def __post_init__(self) -> None:
        check_limits("limits: ", self.min, self.max, self.wakeup_factor, self.sleep_factor)


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """How a pool changes its size. A bad setting raises ConfigError with its name, value and range."""

    min: int
    """Active workers, at least."""
    max: int
    """Workers, active and asleep, at most."""
    wakeup_factor: float = 0.75
    """The fullness of the queue from which workers wake, 0 to 0.999999."""
    sleep_factor: float = 0.5
    """The fullness down to which they fall asleep; not more than ``wakeup_factor``."""
    sleep_threshold: int | None = None
    """How many fall asleep at once, at most; None: half of those that are active."""
    sleep_interval: float = 5.0
    """Seconds after which a sleeping worker stops."""
    heartbeat: float = 1.0
    """Seconds between two calibrations."""
    force_calibration_limit: int = 1000
    """So many new jobs since the last calibration force one at once."""
    target_age: float | None = None
    """The goal, in seconds: no ready job waits longer. None: by fullness alone. With a goal, fullness still wakes,
    so that the queue does not run full, but it puts nobody to sleep whom the goal needs."""

    def __post_init__(self) -> None:
        check_limits("balance: ", self.min, self.max, self.wakeup_factor, self.sleep_factor)
        if self.sleep_threshold is not None:
            check.whole("balance: sleep_threshold", self.sleep_threshold, 1, MOST)
        check.duration("balance: sleep_interval", self.sleep_interval)
        check.duration("balance: heartbeat", self.heartbeat, zero=False)
        check.whole("balance: force_calibration_limit", self.force_calibration_limit, 1, 1_000_000_000)
        if self.target_age is not None:
            check.duration("balance: target_age", self.target_age, zero=False)

    @property
    def limits(self) -> Limits:
        """Its own, in force where no schedule says otherwise."""
        return Limits(self.min, self.max, self.wakeup_factor, self.sleep_factor)


class Crew(msgspec.Struct, frozen=True):
    """Who is there."""

    active: int
    asleep: tuple[int, ...] = ()
    """Since when each sleeps, in steady microseconds; the longest asleep first."""
    busy: int = 0
    """Jobs that run now. More than ``active`` where busy workers were sent to sleep, which they do afterwards."""

    @property
    def idle(self) -> int:
        """Active workers without a job."""
        return max(0, self.active - self.busy)


class Load(msgspec.Struct, frozen=True):
    """What is to be done."""

    size: int
    capacity: int
    ready: int
    oldest_ready: float = 0.0
    """Seconds for which the first ready job has waited."""
    arrival_rate: float = 0.0
    """Jobs a second, measured; see ``Rates``."""
    service_time: float = 0.0
    """Seconds a job, measured; 0.0: not known yet."""
    share: float = 1.0
    """How much of what is done is done by this pool, measured; others may serve the queue too."""
    closed: bool = False

    @property
    def rate(self) -> float:
        """Fullness: 0.0 empty, 1.0 full."""
        return self.size / self.capacity if self.capacity else 0.0


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """What to do, in this order."""

    wake: int = 0
    """So many of those asleep, the last to fall asleep first."""
    start: int = 0
    """So many new ones."""
    sleep: int = 0
    """So many active ones: the idle, and the busy only where there are more workers than the maximum, each when its
    job has ended."""
    stop: int = 0
    """So many of those asleep, the longest asleep first; those that ``sleep`` has just sent included."""
    throttled: bool = False
    """The queue is full and no more workers are allowed."""
    reason: str = ""

    @property
    def any(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.wake or self.start or self.sleep or self.stop)


def calibrate(balance: Balance, limits: Limits, crew: Crew, load: Load, now: int) -> Move:
    """The way from the workers there are to those there should be; ``now`` is steady, in microseconds."""
    if load.closed and not load.size:
        return _move(crew, crew.active - crew.idle, 0, now, "the queue is closed and empty")
    want, reason = _wanted(balance, limits, crew, load)
    least = min(max(limits.min, load.ready > 0), limits.max)
    if want < least:
        want, reason = least, f"at least {least}"
    elif want > limits.max:
        want = limits.max
        reason = f"at most {want}" if crew.active > want else reason
    slept = now - round(balance.sleep_interval * SECOND)
    throttled = load.rate >= 1 and crew.active >= limits.max
    return _move(crew, want, limits.max, slept, reason, throttled)


def _wanted(balance: Balance, limits: Limits, crew: Crew, load: Load) -> tuple[int, str]:
    """How many should be active, whatever the limits say, and why."""
    active, least, most = crew.active, 0, 0
    reason = ""
    if balance.target_age is not None:
        need = goal.need(
            balance.target_age,
            rate=load.arrival_rate,
            seconds=load.service_time,
            ready=load.ready,
            oldest=load.oldest_ready,
            active=active,
            busy=crew.busy,
            share=load.share,
        )
        least, most, reason = need.least, need.most, need.reason
    if load.rate >= limits.wakeup_factor and load.ready > crew.idle:
        doubled = active + min(max(1, active), load.ready - crew.idle)
        if doubled > least:
            return doubled, f"fullness {load.rate:.3g} >= {limits.wakeup_factor:g}"
    if active < least:
        return least, reason
    if active > most and (load.rate <= limits.sleep_factor or not load.ready):
        spare = max(0, crew.idle - load.ready)  # the others are about to have something to do
        fewer = min(max(1, active // 2), balance.sleep_threshold or active, spare, active - least)
        return active - fewer, reason or f"fullness {load.rate:.3g} <= {limits.sleep_factor:g}, or nothing is ready"
    return active, reason


def _move(crew: Crew, want: int, most: int, slept: int, reason: str, throttled: bool = False) -> Move:
    """From ``crew`` to ``want`` active and ``most`` in all. Who sleeps since ``slept`` or longer stops."""
    wake = min(max(0, want - crew.active), len(crew.asleep))
    start = max(0, want - crew.active - wake)
    sleep = max(0, crew.active - want)
    asleep = len(crew.asleep) - wake + sleep
    rested = sum(since <= slept for since in crew.asleep)  # the first ones, whereas wake takes the last
    still_busy = max(0, crew.busy - want)
    stop = max(0, min(asleep - still_busy, max(rested, want + asleep - most)))
    if stop and not (wake or start or sleep):
        reason = "asleep for long enough" if want + asleep <= most else f"at most {most}"
    return Move(wake=wake, start=start, sleep=sleep, stop=stop, throttled=throttled, reason=reason)
