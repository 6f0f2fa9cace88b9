"""Records in the order in which they came, any of which may be taken out of the middle.

A record's ``slot`` is its number in the line, so nobody searches: taking one out leaves a hole that is stepped over,
and holds nothing. Where holes outnumber the records, one pass closes them: a constant cost for each.
"""

from __future__ import annotations

from ..record import Record

HOLES = 256
"""Fewer holes than this are not worth a pass."""


class Fifo:
    """``items[first]`` is the first record, or where it will be."""

    __slots__ = ("base", "first", "items", "living")

    def __init__(self) -> None:
        self.items: list[Record | None] = []
        self.first = 0
        self.living = 0
        self.base = 0
        """The number of ``items[0]``."""

    def append(self, record: Record) -> None:
        record.slot = self.base + len(self.items)
        self.items.append(record)
        self.living += 1

    def head(self) -> Record | None:
        return self.items[self.first] if self.living else None

    def pop(self) -> Record:
        """Take out the first, where there is one."""
        first = self.first
        record = self.items[first]
        assert record is not None
        record.slot = -1
        self.items[first] = None
        self.living -= 1
        self._step()
        return record

    def remove(self, record: Record) -> None:
        """Out of the line, wherever it stands."""
        index = record.slot - self.base
        record.slot = -1
        self.items[index] = None
        self.living -= 1
        if index == self.first:
            self._step()
        elif self.living * 2 < len(self.items) and len(self.items) > HOLES:
            self._close()

    def _step(self) -> None:
        """On to the next record, or behind the last."""
        size = len(self.items)
        first = self.first + 1
        while first < size and self.items[first] is None:
            first += 1
        self.first = first
        if first > HOLES and first * 2 > size:
            self._close()

    def _close(self) -> None:
        """The holes at the head go; where that is not enough, all of them, and the records are numbered anew."""
        self.base += self.first
        del self.items[: self.first]
        self.first = 0
        if self.living * 2 < len(self.items):
            self.base += len(self.items)
            self.items = [record for record in self.items if record is not None]
            for index, record in enumerate(self.items):
                assert record is not None
                record.slot = self.base + index
