"""What a pool tells whoever listens. Frozen values; nothing is made when nobody does."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

import msgspec

from ..job import Job
from .balance import Crew, Load, Move

Verdict: TypeAlias = Literal["acked", "nacked", "released", "buried", "cancelled", "lost"]
Phase: TypeAlias = Literal["new", "running", "draining", "stopped"]


class Started(msgspec.Struct, frozen=True):
    """A handler begins."""

    job: Job
    name: str


class Finished(msgspec.Struct, frozen=True):
    """A job is settled, or its lease is lost."""

    job: Job
    name: str
    verdict: Verdict
    seconds: float
    """From pick-up to settled."""
    error: str | None = None


class PoolState(msgspec.Struct, frozen=True):
    """The pool enters a phase."""

    phase: Phase
    reason: str


class Balanced(msgspec.Struct, frozen=True):
    """The pool changes its size; ``move.reason`` says why."""

    move: Move
    crew: Crew
    """As it was before."""
    load: Load | None
    """What was seen of the queue; None where nobody looked, as a job came to a pool without workers."""


Event: TypeAlias = Started | Finished | PoolState | Balanced


class Listener(Protocol):
    """Called on the pool's event loop: be quick. What it raises is logged once and otherwise ignored."""

    def on(self, event: Event) -> None: ...
