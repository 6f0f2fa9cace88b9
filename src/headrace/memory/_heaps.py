"""Heaps whose entries can be taken out from the middle, cheaply: not at once, but in time.

An entry is a tuple ``(key, seq, id)``; the records themselves stay in one dictionary. Whoever takes a record out
of the middle (an ack, a cancel) says ``forget()``; the entry stays behind as a tombstone of two numbers and an
id, and is stepped over when it surfaces. When tombstones outnumber the living, one pass sweeps them all: a
constant cost per forgotten entry, never more than twice the memory, and no positions to keep right.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush

Entry = tuple[int, int, str]

_FEW = 64
"""Fewer tombstones than this are not worth a sweep."""


class LazyHeap:
    """A min-heap of entries, some of which may no longer stand for anything: ``alive(entry)`` tells."""

    __slots__ = ("alive", "entries", "stale")

    def __init__(self, alive: Callable[[Entry], bool]) -> None:
        self.alive = alive
        self.entries: list[Entry] = []
        self.stale = 0

    def push(self, entry: Entry) -> None:
        heappush(self.entries, entry)

    def peek(self) -> Entry | None:
        """The smallest living entry."""
        entries = self.entries
        while entries:
            if self.alive(entries[0]):
                return entries[0]
            heappop(entries)
            self.stale -= 1
        return None

    def pop(self) -> Entry | None:
        """Take out the smallest living entry."""
        entries = self.entries
        while entries:
            entry = heappop(entries)
            if self.alive(entry):
                return entry
            self.stale -= 1
        return None

    def forget(self) -> None:
        """One entry stands for nothing from now on."""
        self.stale += 1
        if self.stale > _FEW and self.stale * 2 > len(self.entries):
            # A set: a record that came back under the same key has made its old tombstone live again.
            self.entries = list({entry for entry in self.entries if self.alive(entry)})
            heapify(self.entries)
            self.stale = 0

    def __len__(self) -> int:
        """Entries held, tombstones included."""
        return len(self.entries)
