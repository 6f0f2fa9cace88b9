"""What a backend has to bring: the state of one queue, and atomic steps upon it.

A store never waits for jobs and knows no caller: waiting, waking, policies that block, errors and the two faces
are built once, on top, in ``calls.py``. Each method is one atomic step, safe to call from any thread, and first
moves what is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from .job import Job, Stats
from .queue import AsyncWithin, Capabilities, Within
from .settings import Settings
from .waiting import Rooms


@runtime_checkable
class Transactional(Protocol):
    """A store whose steps can be taken inside a transaction of the caller's."""

    def within(self, connection: object, handle: Any) -> Within | AsyncWithin:
        """ConfigError for a connection of no use. ``handle``: what the faces share, see ``calls.Handle``."""


class Store(Protocol):
    """One queue's state. Durations and moments are microseconds, moments in queue time."""

    @property
    def settings(self) -> Settings: ...
    @property
    def capabilities(self) -> Capabilities: ...
    @property
    def rooms(self) -> Rooms:
        """Where callers wait; shared by all handles of this process on the same queue."""

    # What the last step saw; cheap enough to be asked after every call.
    @property
    def ready(self) -> int:
        """Jobs that could be handed out now (0 while paused)."""

    @property
    def room(self) -> int:
        """Places left."""

    @property
    def soonest(self) -> int:
        """By the clock's ``steady()``: when to look again; before that, nothing falls due by time."""

    def changed(self) -> bool:
        """Might something be due, or have been written by another process? Quick, and never blocks."""

    def tick(self) -> None:
        """Move what is due, and see what others did."""

    def put(self, jobs: Sequence[Job]) -> None:
        """All or none. InvalidJob, QueueFull (also where the policy is to wait), DuplicateJob."""

    def take(self, limit: int) -> list[Job]: ...
    def ack(self, jobs: Sequence[Job]) -> list[Job]:
        """Returns those whose lease was lost; the others are done."""

    def nack(self, job: Job, delay: int, error: str | None) -> bool: ...
    def release(self, jobs: Sequence[Job], delay: int) -> list[Job]:
        """Returns those whose lease was lost; the others are given back."""

    def bury(self, job: Job, error: str | None) -> bool: ...
    def abandon(self, job: Job) -> bool:
        """Done as cancelled, by the holder of the lease."""

    def forward(self, job: Job, to: Store) -> bool:
        """Done here and put there, in one step; where its id is unfinished there already, only done here. False
        when the lease is lost. Unsupported where the two have no step in common; else the errors of ``put``."""

    def extend(self, jobs: Sequence[Job], duration: int, too_late: int) -> list[Job]:
        """New snapshots of those whose lease holds; each that is lost adds ``too_late`` to the count."""

    def cancel(self, id: str) -> bool: ...
    def find(self, id: str) -> Job | None: ...
    def dead(self, limit: int, after: int) -> list[Job]: ...
    def take_dead(self, limit: int) -> list[Job]: ...
    def replay(self, limit: int | None, ids: frozenset[str] | None) -> int: ...
    def set_paused(self, paused: bool) -> None: ...
    def stats(self) -> Stats: ...
    def close(self) -> None:
        """This handle takes no more jobs. Later steps still work: what was handed out is settled."""
