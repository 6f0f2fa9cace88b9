"""What proves a queue right: for Headrace's own tests and for anybody's backend.

``VirtualClock`` needs nothing; the conformance suite needs pytest and Hypothesis, so it is loaded when asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .clock import VirtualClock

if TYPE_CHECKING:
    from .contract import QueueContract
    from .raw import RawJob, RawState

__all__ = ["QueueContract", "RawJob", "RawState", "VirtualClock"]


def __getattr__(name: str) -> Any:
    if name == "QueueContract":
        from .contract import QueueContract

        return QueueContract
    if name in ("RawJob", "RawState"):
        from . import raw

        return getattr(raw, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
