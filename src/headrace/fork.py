"""What a forked child must not share with its parent: locks that others held, connections, a queue's memory."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    def after_fork(self) -> None:
        """Called in the child, before anything else runs there."""


_everything: WeakSet[Forkable] = WeakSet()


def register(thing: Forkable) -> None:
    """``thing.after_fork()`` is called in every child forked while it is alive."""
    _everything.add(thing)


def _after_fork() -> None:
    for thing in list(_everything):
        thing.after_fork()


os.register_at_fork(after_in_child=_after_fork)
