"""Enqueue and settle in a transaction of the caller's: what is done here holds if they commit, and never was if not.

The checks are those of ``calls.py``, the statements those of the store; only who carries them out is another one.
Nothing here waits for anybody else: no lock of ours is held until their commit, and a duplicate does not abort it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from .. import check
from ..admit import LONGEST_ID
from ..calls import Calls, Handle
from ..clock import FAR
from ..errors import ConfigError, DuplicateJob
from ..job import Job
from ..native import storable
from ..overflow import Reject
from ..ports import LoopPort, run
from ..queue import AsyncWithin, Settled, Within, running
from ..record import refuse_duplicates
from ..rules import no_room
from ..store import Store
from ..waiting import Rooms
from .connections import NOT_ALLOWED
from .drivers import Driver, Rows, driver, refusal

if TYPE_CHECKING:
    from .store import PostgresStore

_NO_TABLES = {"3F000", "42P01"}
"""There is no such schema, no such table."""


def within(store: PostgresStore, connection: object, handle: Handle) -> Within | AsyncWithin:
    """By what the connection is. ConfigError."""
    line = driver(connection)
    borrowed = _Borrowed(store, line, handle)
    return AwaitedWithin(borrowed, handle) if line.awaited else BlockingWithin(borrowed, handle)


class _Borrowed:
    """The steps of a store that make sense in such a transaction, as coroutines."""

    ready = room = 0  # what is not committed wakes nobody here
    soonest = FAR

    def __init__(self, store: PostgresStore, line: Driver, handle: Handle) -> None:
        self._store = store
        self._line = line
        self._handle = handle
        # Whoever waited for room in here would hold up those who make some.
        self.settings = msgspec.structs.replace(store.settings, overflow=Reject())
        self.rooms = Rooms()

    async def _rows(self, name: str, **values: object) -> Rows:
        await self._begin()
        try:
            return await self._line.rows(self._store.sql[name].decode(), {**self._store.given, **values})
        except Exception as error:
            code, said = refusal(error)
            if code == NOT_ALLOWED:
                raise self._store.stock.not_allowed(said) from error
            if code in _NO_TABLES:
                raise self._elsewhere() from error
            raise

    async def _begin(self) -> None:
        """On a connection of our own, which steps over what this transaction has locked."""
        store = self._store
        if not store.is_due:
            return
        if self._line.awaited:
            await self._handle.asynchronous.call(store.catch_up)
        else:
            store.catch_up()

    async def put(self, jobs: Sequence[Job]) -> None:
        await self._begin()
        records, columns = self._store.columns(jobs)
        await self._see_room(len(jobs))
        refuse_duplicates(records, frozenset[str]().__contains__)
        refs, ids, _ = self._ours(await self._rows("put_within", **columns))
        if len(ids) < len(jobs):
            await self._rows("remove", jobs=refs)
            raise DuplicateJob(next(job.id for job in jobs if job.id not in ids))

    async def _see_room(self, count: int) -> None:
        """Without a lock: several transactions at once may exceed the capacity by what they enqueue."""
        store = self._store
        if not store.in_credit(count):
            capacity, size = self.settings.capacity, self._ours(await self._rows("size"))[0]
            if size + count > capacity:
                raise no_room(self.settings.queue, size, capacity, count)
            store.room = capacity - size
            store.give_credit()
        store.spend(count)

    async def ack(self, jobs: Sequence[Job]) -> list[Job]:
        keys, fences = [job.ref for job in jobs], [self._store.fence(job) for job in jobs]
        done = {row[0] for row in await self._rows(self._store.ack_name, jobs=keys, fences=fences, count=len(jobs))}
        lost = [job for job in jobs if job.ref not in done]
        for job in jobs:
            _tell(job, "acked", job.ref in done)
        return lost

    async def nack(self, job: Job, delay: int, error: str | None) -> bool:
        return await self._settle(job, "nack", "nacked", delay, error)

    async def release(self, jobs: Sequence[Job], delay: int) -> list[Job]:
        rows = await self._rows("release", **self._store.releasing(jobs, delay), bell=None)
        self._ours(rows)
        held = {row[2] for row in rows}
        for job in jobs:
            _tell(job, "released", job.ref in held)
        return [job for job in jobs if job.ref not in held]

    async def bury(self, job: Job, error: str | None) -> bool:
        return await self._settle(job, "bury", "buried", error=error)

    async def _settle(self, job: Job, how: str, verdict: Settled, delay: int = 0, error: str | None = None) -> bool:
        _, _, fate, _ = self._ours(
            await self._rows("settle", **self._store.settling(job, how, delay, error), bell=None)
        )
        _tell(job, verdict, fate is not None)
        return fate is not None

    async def processed(self, key: str) -> bool:
        if not isinstance(key, str) or not storable(key):
            raise ConfigError(f"processed: the key {key!r} is not a text without NUL and lone surrogates")
        if len(key) > LONGEST_ID:
            raise ConfigError(f"processed: the key {key[:32]!r}… has {len(key)} characters, {LONGEST_ID} are allowed")
        return bool(self._ours(await self._rows("processed", key=key))[0])

    async def forget_processed(self, older: float) -> int:
        age = check.duration("forget_processed: older", older)
        return int(self._ours(await self._rows("forget_processed", age=age))[0])

    def _ours(self, rows: Rows) -> tuple[Any, ...]:
        """What a statement answers that finds the queue where it should be."""
        if not rows:
            raise self._elsewhere()
        return rows[0]

    def _elsewhere(self) -> ConfigError:
        return ConfigError(f"within: the connection leads to another database than that of {self._store!r}")


def _tell(job: Job, verdict: Settled, held: bool) -> None:
    """The pool, if one runs the code that did it."""
    attempt = running.get(None)
    if held and attempt is not None:
        attempt.settled(job, verdict)


class _Steps(LoopPort):
    """The steps are coroutines themselves; they suspend where the library does."""

    async def call(self, step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await step(*args, **kwargs)


class _Face:
    def __init__(self, store: _Borrowed, handle: Handle) -> None:
        self._store = store
        self._calls = Calls(cast(Store, store), _Steps(), handle)


class BlockingWithin(_Face):
    """See :class:`headrace.queue.Within`."""

    awaited: Literal[False] = False

    def enqueue(self, job: Job) -> Job:
        return run(self._calls.enqueue(job))

    def enqueue_many(self, jobs: Iterable[Job]) -> list[Job]:
        return run(self._calls.enqueue_many(jobs))

    def ack(self, job: Job) -> None:
        run(self._calls.ack(job))

    def nack(self, job: Job, delay: float = 0.0, error: BaseException | str | None = None) -> None:
        run(self._calls.nack(job, delay, error))

    def release(self, job: Job, delay: float = 0.0) -> None:
        run(self._calls.release(job, delay))

    def bury(self, job: Job, error: BaseException | str | None = None) -> None:
        run(self._calls.bury(job, error))

    def processed(self, key: str) -> bool:
        return run(self._store.processed(key))

    def forget_processed(self, older: float) -> int:
        return run(self._store.forget_processed(older))


class AwaitedWithin(_Face):
    """See :class:`headrace.queue.AsyncWithin`."""

    awaited: Literal[True] = True

    async def enqueue(self, job: Job) -> Job:
        return await self._calls.enqueue(job)

    async def enqueue_many(self, jobs: Iterable[Job]) -> list[Job]:
        return await self._calls.enqueue_many(jobs)

    async def ack(self, job: Job) -> None:
        await self._calls.ack(job)

    async def nack(self, job: Job, delay: float = 0.0, error: BaseException | str | None = None) -> None:
        await self._calls.nack(job, delay, error)

    async def release(self, job: Job, delay: float = 0.0) -> None:
        await self._calls.release(job, delay)

    async def bury(self, job: Job, error: BaseException | str | None = None) -> None:
        await self._calls.bury(job, error)

    async def processed(self, key: str) -> bool:
        return await self._store.processed(key)

    async def forget_processed(self, older: float) -> int:
        return await self._store.forget_processed(older)
