"""The two faces of a queue in memory: as everywhere, but that what has not to wait goes the short way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from ..calls import Handle
from ..chosen import module
from ..faces import AsyncioQueue, SyncQueue
from ..job import Job
from ..ports import LoopPort, ThreadPort
from ..settings import Settings


def memory_queue(settings: Settings, core: str | None = None) -> SyncQueue:
    """A new queue; ``core`` is ``compiled`` or ``interpreted``, else as ``HEADRACE_CORE`` says."""
    make: Callable[..., SyncQueue] = _short(module("memory.direct", core).Direct, module("native", core).own)
    return make(module("memory.store", core).MemoryStore(settings), Handle(LoopPort()))


class _Async(AsyncioQueue):
    def __init__(self, sync: Any) -> None:
        handle = sync._calls.handle
        super().__init__(sync.store, handle.asynchronous, handle)
        self._sync = sync

    @property
    def as_sync(self) -> SyncQueue:
        sync: SyncQueue = self._sync
        return sync

    async def enqueue(self, job: Job) -> Job:
        return job if self._sync.try_put(job) else await self._calls.enqueue(job)

    async def enqueue_many(self, jobs: Iterable[Job]) -> list[Job]:
        batch = list(jobs)
        return batch if self._sync.try_put_many(batch) else await self._calls.enqueue_many(batch)

    async def dequeue(self, timeout: float | None = None) -> Job | None:
        return self._sync.try_take(timeout) or await self._calls.dequeue(timeout)

    async def dequeue_many(self, limit: int, timeout: float | None = None) -> list[Job]:
        return self._sync.try_take_many(limit, timeout) or await self._calls.dequeue_many(limit, timeout)

    async def ack(self, job: Job) -> None:
        if not self._sync.try_ack(job):
            await self._calls.ack(job)

    async def ack_many(self, jobs: Sequence[Job]) -> None:
        if not self._sync.try_ack_many(jobs):
            await self._calls.ack_many(jobs)


@cache
def _short(direct: Any, own: Callable[..., Any]) -> type[SyncQueue]:
    """The sync face, with the short way of one core in front."""

    class MemoryQueue(direct, SyncQueue):  # type: ignore[misc]  # which of the two is known at run time
        def __init__(self, store: Any, handle: Handle) -> None:
            SyncQueue.__init__(self, store, ThreadPort(), handle)
            direct.__init__(self, store, SyncQueue(store, ThreadPort(), handle), self._calls.tell)

        @property
        def as_async(self) -> AsyncioQueue:
            return _Async(self)

    for name, method in vars(direct).items():
        if not name.startswith("_"):
            setattr(MemoryQueue, name, own(MemoryQueue, method))
    return MemoryQueue
