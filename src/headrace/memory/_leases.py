"""Who holds a lease, by when it is over.

All leases of a queue have one length, so they end in the order in which they began: a line, from which most are
taken out before their time. One that was extended to the same length goes to its end; only those that were given
another one go into a heap.
"""

from __future__ import annotations

from ..clock import FAR
from ..record import DEAD, INFLIGHT, Record
from ._fifo import Fifo
from ._heaps import Entry, LazyHeap
from ._table import Table


class Leases:
    """``jobs`` is the core's table of all unfinished records."""

    __slots__ = ("count", "jobs", "last", "line", "others")

    def __init__(self, jobs: Table) -> None:
        self.jobs = jobs
        self.count = 0
        self.line = Fifo()
        self.last = 0
        """When the last lease in line is over."""
        self.others = LazyHeap(self._is_here)

    def _is_here(self, entry: Entry) -> bool:
        record = self.jobs.find(entry[2])
        return (
            record is not None
            and record.due == entry[0]
            and record.seq == entry[1]
            and record.place == INFLIGHT
            and record.slot < 0
        )

    def add(self, record: Record) -> None:
        record.place = INFLIGHT
        self.count += 1
        if self.line.living == 0 or record.due >= self.last:
            self.last = record.due
            self.line.append(record)
        else:
            self.others.push((record.due, record.seq, record.id))

    def remove(self, record: Record) -> None:
        """The caller says where it goes."""
        self.count -= 1
        record.place = DEAD  # in no heap: whoever looks at a tombstone of it must see that
        if record.slot >= 0:
            self.line.remove(record)
        else:
            self.others.forget()

    def soonest(self) -> int:
        first = self.line.head()
        soonest = FAR if first is None else first.due
        if self.others.entries and (entry := self.others.peek()) is not None:
            soonest = min(soonest, entry[0])
        return soonest

    def over(self, now: int) -> list[Record]:
        """Take out those that are over by ``now``, in order."""
        over: list[Record] = []
        while (record := self.line.head()) is not None and record.due <= now:
            self.remove(record)
            over.append(record)
        while (entry := self.others.peek()) is not None and entry[0] <= now:
            self.others.pop()
            record = self.jobs[entry[2]]
            record.place = DEAD
            self.count -= 1
            over.append(record)
        over.sort(key=_end)
        return over


def _end(record: Record) -> tuple[int, int]:
    return (record.due, record.seq)
