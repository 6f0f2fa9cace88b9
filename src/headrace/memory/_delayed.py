"""What is not due yet, in blocks, so that a million jobs that fall due at once do not stop the queue.

Moving them one by one would take a second. Blocks of some hundred jobs, in order of ``(due, seq)``, each knowing
its own best and oldest job, are handed over whole: a few thousand steps, whatever their size. Whoever takes jobs
then sorts one block at a time, and nobody waits longer than that takes.
"""

from __future__ import annotations

from ..clock import FAR
from ..record import Record

SIZE = 512
"""Records in a full block; one that grows to twice as many is split."""


class Block:
    """Some records, and two of them that are asked for. In order of ``(due, seq)`` until its turn comes."""

    __slots__ = ("best", "high", "low", "oldest", "records", "sorted")

    def __init__(self, records: list[Record]) -> None:
        self.records = records
        self.best: Record | None = None
        """None: not known."""
        self.oldest: Record | None = None
        """None: not known."""
        self.sorted = False
        """By turn, and the best of them is the last."""
        self.low = self.high = (0, 0)
        """``(due, seq)`` of its first and last record when it fell due."""

    def add(self, index: int, record: Record) -> None:
        self.records.insert(index, record)
        if len(self.records) == 1:
            self.best = self.oldest = record
        else:
            if self.best is not None and goes_first(record, self.best):
                self.best = record
            if self.oldest is not None and is_older(record, self.oldest):
                self.oldest = record

    def take(self, index: int) -> None:
        record = self.records.pop(index)
        if self.best is record:
            self.best = None
        if self.oldest is record:
            self.oldest = None

    def pop(self) -> None:
        """Take out the best."""
        if not self.sorted:
            self.records.sort(key=_turn, reverse=True)
            self.sorted = True
        self.take(len(self.records) - 1)

    def first(self) -> Record:
        """The best: the one that goes before all others here."""
        if self.best is None:
            best = self.records[-1]
            if not self.sorted:
                for record in self.records:
                    if goes_first(record, best):
                        best = record
            self.best = best
        return self.best

    def eldest(self) -> Record:
        """The one whose first enqueue is the longest ago."""
        if self.oldest is None:
            oldest = self.records[0]
            for record in self.records:
                if is_older(record, oldest):
                    oldest = record
            self.oldest = oldest
        return self.oldest


def _turn(record: Record) -> tuple[int, int]:
    return (-record.priority, record.seq)


def goes_first(one: Record, other: Record) -> bool:
    if one.priority != other.priority:
        return one.priority > other.priority
    return one.seq < other.seq


def is_older(one: Record, other: Record) -> bool:
    if one.enqueued != other.enqueued:
        return one.enqueued < other.enqueued
    return one.seq < other.seq


def is_due_later(one: Record, other: Record) -> bool:
    if one.due != other.due:
        return one.due > other.due
    return one.seq > other.seq


def half(records: list[Record]) -> Block:
    """Of a block that was split: its best and its oldest are looked for now, while it is one and not a thousand."""
    block = Block(records)
    block.first()
    block.eldest()
    return block


class Delayed:
    """All delayed records, in order; none of the blocks is empty."""

    __slots__ = ("blocks", "count")

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.count = 0

    def add(self, record: Record) -> None:
        self.count += 1
        if not self.blocks:
            self.blocks.append(Block([]))
        block = self.blocks[-1]
        if not block.records or is_due_later(record, block.records[-1]):
            # In order, as most are: a full block stays as it is.
            if len(block.records) >= SIZE:
                block = Block([])
                self.blocks.append(block)
            block.add(len(block.records), record)
            return
        number = self._block(record)
        block = self.blocks[number]
        block.add(self._index(block, record), record)
        if len(block.records) >= 2 * SIZE:
            self.blocks.insert(number, half(block.records[:SIZE]))
            self.blocks[number + 1] = half(block.records[SIZE:])

    def remove(self, record: Record) -> None:
        number = self._block(record)
        block = self.blocks[number]
        block.take(self._index(block, record))
        self.count -= 1
        if not block.records:
            del self.blocks[number]

    def all(self) -> list[Record]:
        return [record for block in self.blocks for record in block.records]

    def soonest(self) -> int:
        if not self.blocks:
            return FAR
        block = self.blocks[0]
        record = block.records[0]
        return record.due

    def oldest(self) -> Record | None:
        oldest: Record | None = None
        for block in self.blocks:
            record = block.eldest()
            if oldest is None or is_older(record, oldest):
                oldest = record
        return oldest

    def due_block(self, now: int) -> Block | None:
        """Hand over the first block, or what of it is due by ``now``; None when nothing is."""
        if not self.blocks:
            return None
        block = self.blocks[0]
        records = block.records
        if records[-1].due <= now:
            del self.blocks[0]
        elif records[0].due <= now:
            low, high = 0, len(records)
            while low < high:
                middle = (low + high) // 2
                if records[middle].due <= now:
                    low = middle + 1
                else:
                    high = middle
            block.records = records[low:]
            block.best = block.oldest = None
            block = Block(records[:low])
        else:
            return None
        records = block.records
        block.low = (records[0].due, records[0].seq)
        block.high = (records[-1].due, records[-1].seq)
        self.count -= len(records)
        return block

    def _block(self, record: Record) -> int:
        """The number of the first block that does not end before ``record``."""
        low, high = 0, len(self.blocks) - 1
        while low < high:
            middle = (low + high) // 2
            if is_due_later(record, self.blocks[middle].records[-1]):
                low = middle + 1
            else:
                high = middle
        return low

    def _index(self, block: Block, record: Record) -> int:
        """Where in ``block`` it stands, or belongs."""
        low, high = 0, len(block.records)
        while low < high:
            middle = (low + high) // 2
            if is_due_later(record, block.records[middle]):
                low = middle + 1
            else:
                high = middle
        return low
