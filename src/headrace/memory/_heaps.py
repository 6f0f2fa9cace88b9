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

    __slots__ = ("_alive", "_entries", "_stale")

    def __init__(self, alive: Callable[[Entry], bool]) -> None:
        self._alive = alive
        self._entries: list[Entry] = []
        self._stale = 0

    def push(self, entry: Entry) -> None:
        heappush(self._entries, entry)

    def peek(self) -> Entry | None:
        """The smallest living entry."""
        entries = self._entries
        while entries:
            if self._alive(entries[0]):
                return entries[0]
            heappop(entries)
            self._stale -= 1
        return None

    def pop(self) -> Entry | None:
        """Take out the smallest living entry."""
        entries = self._entries
        while entries:
            entry = heappop(entries)
            if self._alive(entry):
                return entry
            self._stale -= 1
        return None

    def forget(self) -> None:
        """One entry stands for nothing from now on."""
        self._stale += 1
        if self._stale > _FEW and self._stale * 2 > len(self._entries):
            # A set: a record that came back under the same key has made its old tombstone live again.
            self._entries = list({entry for entry in self._entries if self._alive(entry)})
            heapify(self._entries)
            self._stale = 0

    def __len__(self) -> int:
        """Entries held, tombstones included."""
        return len(self._entries)
