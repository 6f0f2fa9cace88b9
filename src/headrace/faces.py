"""The two faces of a queue: thin, and the only place where the calls are spelled out twice.

A face adds nothing to ``calls.py`` but how to wait. A typing test holds the two and their protocols together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Self, overload

from .calls import Calls, Handle
from .errors import Unsupported
from .job import Job, Stats
from .ports import Port, ThreadPort, run
from .queue import AsyncWithin, Blocks, Capabilities, Suspends, Within
from .settings import Settings
from .store import Store, Transactional


class _Face:
    def __init__(self, store: Store, port: Port, handle: Handle) -> None:
        self._calls = Calls(store, port, handle)

    @property
    def settings(self) -> Settings:
        return self._calls.store.settings

    @property
    def capabilities(self) -> Capabilities:
        return self._calls.store.capabilities

    def _over_there(self, to: object) -> Calls:
        """The calls of another queue, whichever face of it is given, carried out as this one's are."""
        if not isinstance(to, _Face):
            raise Unsupported(f"forward: {type(to).__name__} has no step in common with {self!r}")
        return Calls(to._calls.store, self._calls.port, to._calls.handle)

    @overload
    def within(self, connection: Suspends) -> AsyncWithin: ...
    @overload
    def within(self, connection: Blocks) -> Within: ...
    def within(self, connection: Any) -> Within | AsyncWithin:
        store = self._calls.store
        if not isinstance(store, Transactional):
            raise Unsupported(
                f"within: {store!r} is not in your database, so no transaction of yours reaches it: "
                "use a postgresql:// queue, or enqueue after your commit"
            )
        return store.within(connection, self._calls.handle)

    @property
    def store(self) -> Store:
        """The state behind this face: for tests and tools, not part of the contract."""
        return self._calls.store

    def __repr__(self) -> str:
        state = " closed" if self._calls.handle.closed else ""
        return f"<{type(self).__name__} {self.settings.queue!r} on {self._calls.store!r}{state}>"


class SyncQueue(_Face):
    """The calls of the contract for sync callers; see :class:`headrace.queue.Queue`."""

    @property
    def as_async(self) -> AsyncioQueue:
        calls = self._calls
        return AsyncioQueue(calls.store, calls.handle.asynchronous, calls.handle)

    def enqueue(self, job: Job) -> Job:
        return run(self._calls.enqueue(job))

    def enqueue_many(self, jobs: Iterable[Job]) -> list[Job]:
        return run(self._calls.enqueue_many(jobs))

    def dequeue(self, timeout: float | None = None) -> Job | None:
        return run(self._calls.dequeue(timeout))

    def dequeue_many(self, limit: int, timeout: float | None = None) -> list[Job]:
        return run(self._calls.dequeue_many(limit, timeout))

    def ack(self, job: Job) -> None:
        run(self._calls.ack(job))

    def ack_many(self, jobs: Sequence[Job]) -> None:
        run(self._calls.ack_many(jobs))

    def nack(self, job: Job, delay: float = 0.0, error: BaseException | str | None = None) -> None:
        run(self._calls.nack(job, delay, error))

    def extend(self, job: Job, seconds: float) -> Job:
        return run(self._calls.extend(job, seconds))

    def extend_many(self, jobs: Sequence[Job], seconds: float) -> list[Job]:
        return run(self._calls.extend_many(jobs, seconds))

    def release(self, job: Job, delay: float = 0.0) -> None:
        run(self._calls.release(job, delay))

    def release_many(self, jobs: Sequence[Job], delay: float = 0.0) -> None:
        run(self._calls.release_many(jobs, delay))

    def bury(self, job: Job, error: BaseException | str | None = None) -> None:
        run(self._calls.bury(job, error))

    def forward(self, job: Job, to: object) -> None:
        """Move a leased job to another queue of the same store in one step: done here, enqueued there. It keeps
        its id, and never waits for room. Unsupported where the other queue is elsewhere; LeaseLost, QueueFull,
        QueueClosed, InvalidJob."""
        run(self._calls.forward(job, self._over_there(to)))

    def cancel(self, job: Job | str) -> bool:
        return run(self._calls.cancel(job))

    def stats(self) -> Stats:
        return run(self._calls.stats())

    def find(self, id: str) -> Job | None:
        return run(self._calls.find(id))

    def dead(self, limit: int = 100, after: Job | None = None) -> list[Job]:
        return run(self._calls.dead(limit, after))

    def take_dead(self, limit: int) -> list[Job]:
        return run(self._calls.take_dead(limit))

    def replay(self, limit: int | None = None, ids: Sequence[str] | None = None) -> int:
        return run(self._calls.replay(limit, ids))

    def pause(self) -> None:
        run(self._calls.pause())

    def resume(self) -> None:
        run(self._calls.resume())

    def close(self) -> None:
        run(self._calls.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncioQueue(_Face):
    """The same calls for asyncio; see :class:`headrace.queue.AsyncQueue`."""

    @property
    def as_sync(self) -> SyncQueue:
        return SyncQueue(self._calls.store, ThreadPort(), self._calls.handle)

    async def enqueue(self, job: Job) -> Job:
        return await self._calls.enqueue(job)

    async def enqueue_many(self, jobs: Iterable[Job]) -> list[Job]:
        return await self._calls.enqueue_many(jobs)

    async def dequeue(self, timeout: float | None = None) -> Job | None:
        return await self._calls.dequeue(timeout)

    async def dequeue_many(self, limit: int, timeout: float | None = None) -> list[Job]:
        return await self._calls.dequeue_many(limit, timeout)

    async def ack(self, job: Job) -> None:
        await self._calls.ack(job)

    async def ack_many(self, jobs: Sequence[Job]) -> None:
        await self._calls.ack_many(jobs)

    async def nack(self, job: Job, delay: float = 0.0, error: BaseException | str | None = None) -> None:
        await self._calls.nack(job, delay, error)

    async def extend(self, job: Job, seconds: float) -> Job:
        return await self._calls.extend(job, seconds)

    async def extend_many(self, jobs: Sequence[Job], seconds: float) -> list[Job]:
        return await self._calls.extend_many(jobs, seconds)

    async def release(self, job: Job, delay: float = 0.0) -> None:
        await self._calls.release(job, delay)

    async def release_many(self, jobs: Sequence[Job], delay: float = 0.0) -> None:
        await self._calls.release_many(jobs, delay)

    async def bury(self, job: Job, error: BaseException | str | None = None) -> None:
        await self._calls.bury(job, error)

    async def forward(self, job: Job, to: object) -> None:
        await self._calls.forward(job, self._over_there(to))

    async def cancel(self, job: Job | str) -> bool:
        return await self._calls.cancel(job)

    async def stats(self) -> Stats:
        return await self._calls.stats()

    async def find(self, id: str) -> Job | None:
        return await self._calls.find(id)

    async def dead(self, limit: int = 100, after: Job | None = None) -> list[Job]:
        return await self._calls.dead(limit, after)

    async def take_dead(self, limit: int) -> list[Job]:
        return await self._calls.take_dead(limit)

    async def replay(self, limit: int | None = None, ids: Sequence[str] | None = None) -> int:
        return await self._calls.replay(limit, ids)

    async def pause(self) -> None:
        await self._calls.pause()

    async def resume(self) -> None:
        await self._calls.resume()

    async def close(self) -> None:
        await self._calls.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def faces(store: Store, asynchronous: Port) -> SyncQueue:
    """A handle on ``store``; ``asynchronous`` is how its steps are carried out for async callers."""
    return SyncQueue(store, ThreadPort(), Handle(asynchronous))
