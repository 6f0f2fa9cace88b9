"""The overflow policies. Whatever leaves by one is counted; nothing disappears in silence."""

from __future__ import annotations

import msgspec

from .. import check
from ..errors import ConfigError


class Overflow(msgspec.Struct, frozen=True):
    """The base: what to do with a newcomer for whom there is no room."""


class Reject(Overflow, frozen=True):
    """Raise QueueFull at once: the caller decides. The default, right at the edge of an API."""


class Block(Overflow, frozen=True):
    """Back-pressure: wait until there is room, at most ``timeout`` seconds (None: for ever), then QueueFull."""

    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.timeout is not None:
            check.duration("overflow: Block.timeout", self.timeout)


class DropOldest(Overflow, frozen=True):
    """Make room by dropping the waiting job that was first enqueued longest ago: for data whose value
    fades (positions, samples). Ready jobs go first, then delayed ones, never running ones; when everything
    is running, QueueFull."""


class DropNewest(Overflow, frozen=True):
    """Drop the newcomer: the caller is not told, the counter ``dropped`` is."""


_NAMED: dict[str, Overflow] = {
    "reject": Reject(),
    "block": Block(),
    "drop_oldest": DropOldest(),
    "drop_newest": DropNewest(),
}


def named(policy: Overflow | str) -> Overflow:
    """A policy by its name, or the policy object itself; ConfigError for anything else."""
    if isinstance(policy, Overflow):
        return policy
    if isinstance(policy, str) and policy in _NAMED:
        return _NAMED[policy]
    raise ConfigError(f"overflow: {policy!r} is none of {', '.join(_NAMED)}, nor a policy object")
