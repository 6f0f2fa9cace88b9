"""The settings of a queue: checked once, at construction, and frozen from then on."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import msgspec

from . import check
from .clock import Clock, SystemClock
from .errors import ConfigError
from .overflow import Overflow, named


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What every backend understands. A bad one raises ConfigError with its name, value and range."""

    queue: str = "default"
    """The queue's name: an identifier."""
    capacity: int = 10_000
    """How many jobs may be ready, delayed and in flight together."""
    max_attempts: int = 5
    """How often a job may be leased, the first time included, where the job does not say."""
    lease: float = 30.0
    """Seconds for which a dequeued job is hidden from everyone else."""
    overflow: Overflow = msgspec.field(default_factory=lambda: named("reject"))
    """What happens to a newcomer when the queue is full."""
    dead_capacity: int | None = None
    """How many dead letters are kept; None: memory keeps as many as ``capacity``, a durable queue all."""
    deadline_to_dead: bool = True
    """A job whose deadline passed before it could start is buried; False: dropped. Counted either way."""
    max_payload: int = 1 << 20
    """The largest payload, in bytes."""
    default_delay: float = 0.0
    """Seconds to wait for a job that says neither ``delay`` nor ``run_at``; one for now says ``run_at`` now."""
    default_deadline: float | None = None
    """Seconds within which a job that names no ``deadline`` must start, counted from when it first may."""
    clock: Clock = msgspec.field(default_factory=SystemClock)
    """The queue's clock; a virtual one in tests."""

    @property
    def lease_us(self) -> int:
        return round(self.lease * 1_000_000)

    @classmethod
    def make(cls, *, also: tuple[str, ...] = (), **given: Any) -> Settings:
        """Check what was given; unknown names are refused with the known ones listed, a backend's own (``also``)
        among them."""
        known = (*cls.__struct_fields__, *also)
        for name in given:
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f" (did you mean {near[0]}?)" if near else ""
                raise ConfigError(f"{name}: no such setting{hint}; the settings are {', '.join(known)}")
        given = {name: value for name, value in given.items() if name != "clock" or value is not None}
        if "overflow" in given:
            given["overflow"] = named(given["overflow"])
        made = cls(**given)
        check.identifier("queue", made.queue)
        check.whole("capacity", made.capacity, 1, 1_000_000_000)
        check.whole("max_attempts", made.max_attempts, 1, 1_000_000)
        check.duration("lease", made.lease, zero=False)
        if made.dead_capacity is not None:
            check.whole("dead_capacity", made.dead_capacity, 0, 1_000_000_000)
        check.flag("deadline_to_dead", made.deadline_to_dead)
        check.whole("max_payload", made.max_payload, 0, 1 << 30)
        check.duration("default_delay", made.default_delay)
        if made.default_deadline is not None:
            check.duration("default_deadline", made.default_deadline, zero=False)
        return made
