"""What may be handed out now, in the order of the contract: the higher priority first, then first come, first out.

Nearly all jobs come in that order by themselves: each priority has a line of its own (a ``Bucket``), and the best
job is the head of the highest one that is not empty. What comes out of order (a retry, which keeps its place; a job
that was first enqueued before its turn) goes into heaps, and so does everything once there are too many priorities
for a line each. What fell due by the thousand waits in blocks, see ``_delayed.py``.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace

from ..record import DEAD, READY, Record
from ._delayed import Block, goes_first, is_older
from ._fifo import Fifo
from ._heaps import Entry, LazyHeap
from ._table import Table

LINES = 64
"""Priorities that have a line of their own."""
NEAR = 63
DEEP = 1000
"""More records than this do not fit into the nearest cache."""


class Bucket(Fifo):
    """The line of one priority, in order of ``seq`` and of the first enqueue at once."""

    __slots__ = ("enqueued", "priority", "rank", "seq")

    def __init__(self, priority: int) -> None:
        super().__init__()
        self.priority = priority
        self.rank = 0
        """Its index among the buckets."""
        self.seq = self.enqueued = 0
        """Of the last one that came."""


class Ready:
    """The line; ``jobs`` is the core's table of all unfinished records."""

    __slots__ = ("ages", "buckets", "by_priority", "count", "jobs", "late", "near", "top", "waiting")

    def __init__(self, jobs: Table) -> None:
        self.jobs = jobs
        self.count = 0
        self.buckets: list[Bucket] = []
        """The highest priority first."""
        self.by_priority: dict[int, Bucket] = {}
        self.near: list[Bucket | None] = [None] * (NEAR + 1)
        """Some of them, by the last bits of their priority: quicker than a dictionary."""
        self.top = 0
        """No bucket before this one holds anything."""
        self.waiting = LazyHeap(self._is_here)
        self.ages = LazyHeap(self._is_here)
        """What is in ``waiting``, by the first enqueue."""
        self.late: list[tuple[int, int, Block]] = []
        """A heap of due blocks, by their best records."""

    def _is_here(self, entry: Entry) -> bool:
        record = self.jobs.find(entry[2])
        return record is not None and record.seq == entry[1] and record.place == READY and record.slot < 0

    def push(self, record: Record) -> None:
        record.place = READY
        self.count += 1
        bucket = self.near[record.priority & NEAR]
        if bucket is None or bucket.priority != record.priority:
            bucket = self._bucket(record.priority)
        if bucket is not None and (
            bucket.living == 0 or (record.seq > bucket.seq and record.enqueued >= bucket.enqueued)
        ):
            bucket.seq = record.seq
            bucket.enqueued = record.enqueued
            bucket.append(record)
            if bucket.rank < self.top or self.count == 1:
                self.top = bucket.rank
        else:
            self.waiting.push((-record.priority, record.seq, record.id))
            self.ages.push((record.enqueued, record.seq, record.id))

    def _bucket(self, priority: int) -> Bucket | None:
        """The line of a priority, made where there is none; None: there are too many."""
        bucket = self.by_priority.get(priority)
        if bucket is None and len(self.buckets) < LINES:
            bucket = self._new_bucket(priority)
        self.near[priority & NEAR] = bucket
        return bucket

    def _new_bucket(self, priority: int) -> Bucket:
        bucket = Bucket(priority)
        self.by_priority[priority] = bucket
        self.buckets.append(bucket)
        self.buckets.sort(key=lambda bucket: -bucket.priority)
        for rank, each in enumerate(self.buckets):
            each.rank = rank
        self.top = 0
        return bucket

    def push_block(self, block: Block) -> None:
        """Its records stay as they are until somebody asks for one."""
        self.count += len(block.records)
        best = block.first()
        heappush(self.late, (-best.priority, best.seq, block))

    def pop(self) -> Record | None:
        """Take out the one whose turn it is; the caller says where it goes."""
        if self.count == 0:
            return None
        best: Record | None = None
        while self.top < len(self.buckets):
            bucket = self.buckets[self.top]
            if bucket.living:
                if not self.late and not self.waiting.entries:
                    self.count -= 1
                    if self.count > DEEP:
                        self.jobs.look_ahead(bucket)
                    return bucket.pop()
                best = bucket.head()
                break
            self.top += 1
        best = self._better(best)
        if best.place != READY:
            return self._pop_late()
        self.remove(best)
        return best

    def _better(self, best: Record | None) -> Record:
        """The best of all, where ``best`` is the best of those in the buckets."""
        if (entry := self.waiting.peek()) is not None:
            record = self.jobs[entry[2]]
            if best is None or goes_first(record, best):
                best = record
        if self.late:
            block = self.late[0][2]
            record = block.first()
            if best is None or goes_first(record, best):
                best = record
        assert best is not None
        return best

    def _pop_late(self) -> Record:
        """The best of the first block; sorting it costs its other jobs nothing any more."""
        block = self.late[0][2]
        record = block.first()
        self.count -= 1
        block.pop()
        if block.records:
            best = block.first()
            heapreplace(self.late, (-best.priority, best.seq, block))
        else:
            heappop(self.late)
        return record

    def remove(self, record: Record) -> None:
        """Out of the middle of its line; not of a block, see ``bring``."""
        self.count -= 1
        record.place = DEAD  # in no heap: whoever looks at a tombstone of it must see that
        if record.slot >= 0:
            bucket = self.by_priority[record.priority]
            bucket.remove(record)
        else:
            self.waiting.forget()
            self.ages.forget()

    def bring(self, record: Record) -> None:
        """Out of the block in which it fell due, and into line like any other."""
        due = (record.due, record.seq)
        number = 0
        block = self.late[0][2]
        while not block.low <= due <= block.high:
            number += 1
            block = self.late[number][2]
        block.take(block.records.index(record))
        if block.records:
            best = block.first()
            self.late[number] = (-best.priority, best.seq, block)
        else:
            del self.late[number]
        heapify(self.late)
        self.count -= 1
        self.push(record)

    def oldest(self) -> Record | None:
        """The one whose first enqueue is the longest ago."""
        oldest: Record | None = None
        for bucket in self.buckets:
            record = bucket.head()
            if record is not None and (oldest is None or is_older(record, oldest)):
                oldest = record
        entry = self.ages.peek()
        if entry is not None:
            record = self.jobs[entry[2]]
            if oldest is None or is_older(record, oldest):
                oldest = record
        for _, _, block in self.late:
            record = block.eldest()
            if oldest is None or is_older(record, oldest):
                oldest = record
        return oldest
