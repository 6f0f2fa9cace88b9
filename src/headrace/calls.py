"""The one logic of a queue, over any store and any port: checks, waiting, waking, errors.

Coroutines all, whether the face in front of them is sync or async: see ``ports.py``. A rule of the contract that
is not about state (that is the store's) stands here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from . import check
from .clock import FAR
from .errors import ConfigError, LeaseLost, QueueClosed, QueueFull, Unavailable
from .job import Job, Stats
from .overflow import Block
from .ports import Port
from .store import Store
from .text import describe


class Calls:
    """All calls of the contract; ``closed`` is this handle's, shared by its two faces."""

    def __init__(self, store: Store, port: Port, handle: Handle) -> None:
        self.store = store
        self.port = port
        self.handle = handle
        self.clock = store.settings.clock

    def tell(self) -> None:
        """After a step: wake whoever it made something ready for."""
        store = self.store
        consumers, producers = store.rooms.consumers, store.rooms.producers
        if consumers.tickets:
            if store.ready:
                consumers.notify()
            consumers.rearm(store.soonest)
        if producers.tickets:
            if store.room > 0:
                producers.notify()
            producers.rearm(store.soonest)

    async def _tick(self) -> None:
        await self.port.call(self.store.tick)
        self.tell()

    def _until(self, timeout: float | None) -> int:
        if timeout is None:
            return FAR
        if timeout == 0:
            return 0
        return self.clock.steady() + check.duration("timeout", timeout)

    # In

    async def enqueue(self, job: Job) -> Job:
        await self._put((job,))
        return job

    async def enqueue_many(self, jobs: Iterable[Job]) -> list[Job]:
        batch = list(jobs)
        await self._put(batch)
        return batch

    async def _put(self, batch: Sequence[Job]) -> None:
        if self.handle.closed:
            raise self._closed()
        try:
            await self.port.call(self.store.put, batch)
        except QueueFull:
            policy = self.store.settings.overflow
            if not isinstance(policy, Block) or len(batch) > self.store.settings.capacity:
                raise
            await self._put_when_there_is_room(batch, self._until(policy.timeout))
        self.tell()

    async def _put_when_there_is_room(self, batch: Sequence[Job], deadline: int) -> None:
        room, ticket = self.store.rooms.producers, self.port.ticket()
        room.enter(ticket)
        more = True
        try:
            while not self.handle.closed:
                try:
                    await self.port.call(self.store.put, batch)
                    return
                except QueueFull:
                    if self.clock.steady() >= deadline:
                        more = False
                        raise
                await room.wait(ticket, self.clock, deadline, self.store, self._tick)
            raise self._closed()
        finally:
            room.leave(ticket, more)

    def _closed(self) -> QueueClosed:
        return QueueClosed(f"queue {self.store.settings.queue!r} is closed: it takes no new jobs")

    # Out

    async def dequeue(self, timeout: float | None = None) -> Job | None:
        taken = await self._next(1, timeout)
        return taken[0] if taken else None

    async def dequeue_many(self, limit: int, timeout: float | None = None) -> list[Job]:
        check.whole("limit", limit, 1, 1_000_000)
        return await self._next(limit, timeout)

    async def _next(self, limit: int, timeout: float | None) -> list[Job]:
        deadline = self._until(timeout)
        taken = await self._take(limit)
        if taken or (deadline == 0 and not self.handle.closed):
            return taken
        room, ticket = self.store.rooms.consumers, self.port.ticket()
        room.enter(ticket)
        more = True  # whoever leaves by an exception has taken nothing: the next in line shall look
        try:
            # Enter, then look once more, then sleep: what came between the two looks finds the ticket.
            while not (taken := await self._take(limit)):
                if self.handle.closed:
                    raise QueueClosed(f"queue {self.store.settings.queue!r} is closed and nothing is due any more")
                if self.clock.steady() >= deadline:
                    break
                await room.wait(ticket, self.clock, deadline, self.store, self._tick)
            more = self.store.ready > 0
            return taken
        finally:
            room.leave(ticket, more)

    async def _take(self, limit: int) -> list[Job]:
        taken = await self.port.take(self.store.take, limit, self._give_back)
        self.tell()
        return taken

    def _give_back(self, jobs: Sequence[Job]) -> None:
        self.store.release(jobs, 0)
        self.tell()

    # Settling

    async def ack(self, job: Job) -> None:
        await self.ack_many((job,))

    async def ack_many(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            _leased(job)
        lost = await self.port.call(self.store.ack, jobs)
        self.tell()
        if lost:
            raise LeaseLost(lost)

    async def nack(self, job: Job, delay: float = 0.0, error: BaseException | str | None = None) -> None:
        micros = check.duration("nack: delay", delay)
        self._settled(_leased(job), await self.port.call(self.store.nack, job, micros, describe(error)))

    async def release(self, job: Job, delay: float = 0.0) -> None:
        await self.release_many((job,), delay)

    async def release_many(self, jobs: Sequence[Job], delay: float = 0.0) -> None:
        micros = check.duration("release: delay", delay)
        for job in jobs:
            _leased(job)
        lost = await self.port.call(self.store.release, jobs, micros)
        self.tell()
        if lost:
            raise LeaseLost(lost)

    async def bury(self, job: Job, error: BaseException | str | None = None) -> None:
        self._settled(_leased(job), await self.port.call(self.store.bury, job, describe(error)))

    async def forward(self, job: Job, to: Calls) -> None:
        if to.handle.closed:
            raise to._closed()
        self._settled(job, await self.port.call(self.store.forward, job, to.store))
        with suppress(Unavailable):  # a courtesy: who waits there would look by itself a little later
            await to._tick()

    async def extend(self, job: Job, seconds: float) -> Job:
        held = await self._extend((job,), seconds, too_late=1)
        if not held:
            raise LeaseLost((job,))
        return held[0]

    async def extend_many(self, jobs: Sequence[Job], seconds: float) -> list[Job]:
        return await self._extend(jobs, seconds, too_late=0)

    async def _extend(self, jobs: Sequence[Job], seconds: float, too_late: int) -> list[Job]:
        micros = check.duration("extend: seconds", seconds, zero=False)
        for job in jobs:
            _leased(job)
        held = await self.port.call(self.store.extend, jobs, micros, too_late)
        self.tell()
        return held

    async def cancel(self, job: Job | str) -> bool:
        if isinstance(job, str):
            removed = await self.port.call(self.store.cancel, job)
            self.tell()
            return removed
        self._settled(_leased(job), await self.port.call(self.store.abandon, job))
        return True

    def _settled(self, job: Job, held: bool) -> None:
        self.tell()
        if not held:
            raise LeaseLost((job,))

    # Looking, and the dead

    async def stats(self) -> Stats:
        stats = await self.port.call(self.store.stats)
        self.tell()
        return stats

    async def find(self, id: str) -> Job | None:
        found = await self.port.call(self.store.find, id)
        self.tell()
        return found

    async def dead(self, limit: int = 100, after: Job | None = None) -> list[Job]:
        found = await self.port.call(self.store.dead, _count(limit), 0 if after is None else after.ref)
        self.tell()
        return found

    async def take_dead(self, limit: int) -> list[Job]:
        taken = await self.port.call(self.store.take_dead, _count(limit))
        self.tell()
        return taken

    async def replay(self, limit: int | None = None, ids: Sequence[str] | None = None) -> int:
        if isinstance(ids, str):
            raise ConfigError(f"replay: ids={ids!r} is one text, not a sequence of ids: write [{ids!r}]")
        if self.handle.closed:
            raise self._closed()
        names = None if ids is None else frozenset(ids)
        count = await self.port.call(self.store.replay, None if limit is None else _count(limit), names)
        self.tell()
        return count

    async def pause(self) -> None:
        await self.port.call(self.store.set_paused, True)

    async def resume(self) -> None:
        await self.port.call(self.store.set_paused, False)
        self.tell()

    async def close(self) -> None:
        if not self.handle.closed:
            self.handle.closed = True
            await self.port.call(self.store.close)
        for room in (self.store.rooms.consumers, self.store.rooms.producers):
            room.wake_all()
        self.handle.asynchronous.close()


class Handle:
    """What the two faces of one handle share."""

    __slots__ = ("asynchronous", "closed")

    def __init__(self, asynchronous: Port) -> None:
        self.closed = False
        self.asynchronous = asynchronous
        """How steps are carried out for async callers."""


def _leased(job: Job) -> Job:
    """Settling takes what ``dequeue`` returned, and that may have been None."""
    if not isinstance(job, Job):
        raise ConfigError(f"settling takes the job that dequeue returned, not {type(job).__name__}")
    return job


def _count(limit: object) -> int:
    if type(limit) is not int:
        raise ConfigError(f"limit: {limit!r} is not a whole number")
    return max(limit, 0)
