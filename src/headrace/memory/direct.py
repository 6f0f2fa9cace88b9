"""The short way of a job that has not to wait: one step of the store, in the caller's thread, and nothing else.

What finds the queue full, the id taken, nothing ready or the lease lost is left as it was, and goes the way that
all calls of all queues go (``calls.py``), which knows what to do. So there is one set of rules, and here is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..check import LONGEST
from ..errors import LeaseLost
from ..faces import SyncQueue
from ..job import Job
from ..native import whole
from .store import MemoryStore


class Direct:
    """``try_`` calls that come back empty have changed nothing; the others then go the long way. Calls for sync
    callers here, those for async ones in ``queue.py``, where being compiled would win nothing."""

    def __init__(self, store: MemoryStore, long_way: SyncQueue, tell: Callable[[], None]) -> None:
        self._store = store
        self._long = long_way
        self._tell = tell
        """Wakes whoever waits for what a step did."""
        self._waiting = store.rooms.waiting

    def enqueue(self, job: Job) -> Job:
        return job if self._put(job) else self._long.enqueue(job)

    def enqueue_many(self, jobs: Iterable[Job]) -> list[Job]:
        batch = list(jobs)
        return batch if self._put_many(batch) else self._long.enqueue_many(batch)

    def dequeue(self, timeout: float | None = None) -> Job | None:
        job = self._take(timeout)
        return self._long.dequeue(timeout) if job is None else job

    def dequeue_many(self, limit: int, timeout: float | None = None) -> list[Job]:
        return self._take_many(limit, timeout) or self._long.dequeue_many(limit, timeout)

    def ack(self, job: Job) -> None:
        if not self._ack(job):
            self._long.ack(job)

    def ack_many(self, jobs: Sequence[Job]) -> None:
        if not self._ack_many(jobs):
            self._long.ack_many(jobs)

    def _put(self, job: Job) -> bool:
        if self._store.closed or not self._store.put_one(job):
            return False
        if self._waiting:
            self._tell()
        return True

    def _put_many(self, jobs: Sequence[Job]) -> bool:
        if self._store.closed or not self._store.put_many(jobs):
            return False
        if self._waiting:
            self._tell()
        return True

    def _take(self, timeout: object) -> Job | None:
        if not plain(timeout):
            return None
        job = self._store.take_one()
        if self._waiting:
            self._tell()
        return job

    def _take_many(self, limit: object, timeout: object) -> list[Job] | None:
        if type(limit) is not int or not 1 <= limit <= 1_000_000 or not plain(timeout):
            return None
        jobs = self._store.take(limit)
        if self._waiting:
            self._tell()
        return jobs

    def _ack(self, job: Job) -> bool:
        if not isinstance(job, Job) or not self._store.ack_one(job):
            return False
        if self._waiting:
            self._tell()
        return True

    def _ack_many(self, jobs: Sequence[Job]) -> bool:
        """LeaseLost for those that had lost theirs; the others are done."""
        for job in jobs:
            if not isinstance(job, Job):
                return False
        lost = self._store.ack(jobs)
        if self._waiting:
            self._tell()
        if lost:
            raise LeaseLost(lost)
        return True

    # The same for the async face. Compiled, a name that others see costs those that do not look it up.

    def try_put(self, job: Job) -> bool:
        return self._put(job)

    def try_put_many(self, jobs: Sequence[Job]) -> bool:
        return self._put_many(jobs)

    def try_take(self, timeout: object) -> Job | None:
        return self._take(timeout)

    def try_take_many(self, limit: object, timeout: object) -> list[Job] | None:
        return self._take_many(limit, timeout)

    def try_ack(self, job: Job) -> bool:
        return self._ack(job)

    def try_ack_many(self, jobs: Sequence[Job]) -> bool:
        return self._ack_many(jobs)


def plain(timeout: object) -> bool:
    """A timeout with which nothing is wrong."""
    return timeout is None or whole(timeout, 0, LONGEST) or (type(timeout) is float and 0 <= timeout <= LONGEST)
