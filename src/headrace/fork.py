"""What a forked child must not share with its parent: held locks, connections, a queue's memory.

Threads do not come along into a child, but the locks they held do, for ever. Nor may a child inherit an open
SQLite connection: the library keeps its table of file locks in memory, and a child would believe in locks that
only its parent holds. So everything is put down before a fork, and picked up again on both sides.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    def before_fork(self) -> None:
        """In the parent, right before: finish what is under way, and let go of what cannot be shared."""

    def after_fork_in_parent(self) -> None:
        """In the parent, right after: go on."""

    def after_fork_in_child(self) -> None:
        """In the child, before anything else runs there: begin anew."""


_everything: WeakSet[Forkable] = WeakSet()
_one_at_a_time = threading.Lock()
_under_way: list[Forkable] = []


def register(thing: Forkable) -> None:
    """Its three methods are called at every fork of this process while it is alive."""
    _everything.add(thing)


def _before() -> None:
    _one_at_a_time.acquire()
    # In one order everywhere: whoever takes the locks of two stores takes them in this order, too.
    _under_way[:] = sorted(_everything, key=id)
    for thing in _under_way:
        thing.before_fork()


def _after_in_parent() -> None:
    for thing in _under_way:
        thing.after_fork_in_parent()
    _under_way.clear()
    _one_at_a_time.release()


def _after_in_child() -> None:
    global _one_at_a_time
    _one_at_a_time = threading.Lock()
    for thing in _under_way:
        thing.after_fork_in_child()
    _under_way.clear()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
