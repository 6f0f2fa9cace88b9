"""The contract as types: what every queue can do, for sync and for async callers.

Every call first moves what is due: delayed jobs whose time has come, leases that are over. All settling
calls (``ack`` to ``bury``) need the lease in the job that ``dequeue`` returned, and raise LeaseLost, changing
nothing, when it is over: because its time ran out, because it was settled already, or because another worker
holds the same job now.

The two protocols name the same calls. Their one logic is in ``calls.py``.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeAlias, overload, runtime_checkable

import msgspec

from .job import Job, Stats
from .settings import Settings


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a backend can do beyond the contract. What it cannot, it refuses with Unsupported."""

    durable: bool
    """Jobs survive the end of the process."""
    processes: bool
    """Several processes may share the queue."""
    machines: bool = False
    """Several machines may share the queue."""
    transactional: bool = False
    """Enqueue and settle inside the caller's own transaction."""
    virtual_clock: bool = True
    """Takes a clock from the caller."""


Settled: TypeAlias = Literal["acked", "nacked", "released", "buried"]


class Attempt(Protocol):
    """Somebody who settles a job when its handler has ended."""

    def settled(self, job: Job, how: Settled) -> None:
        """The handler has settled that job itself, in a transaction of its own."""


running: ContextVar[Attempt] = ContextVar("headrace.running")
"""Whose code runs here, where a pool runs it."""


@runtime_checkable
class Inspect(Protocol):
    """Looking without touching: all that a dashboard needs."""

    def stats(self) -> Stats:
        """The figures now, and the running totals. Costs the same with a million jobs as with ten."""

    def find(self, id: str) -> Job | None:
        """The unfinished job with that id, else the latest dead letter with it, else None."""

    def dead(self, limit: int = 100, after: Job | None = None) -> list[Job]:
        """Dead letters, the longest dead first, at most ``limit``, beginning behind ``after``. They stay."""


class Blocks(Protocol):
    """What a connection or a session of a library that blocks looks like."""

    def close(self) -> None: ...


class Suspends(Protocol):
    """What one of an asynchronous library looks like."""

    def close(self) -> Coroutine[Any, Any, object]: ...


class Within(Protocol):
    """The calls inside the caller's own transaction: they hold if it commits, and never were if it does not.

    A full queue raises QueueFull whatever its overflow policy, and room is looked for without a lock: transactions
    that enqueue at the same time may exceed the capacity. After an error of ours the transaction can go on, but for
    ConfigError from the server (another database, no rights): then it can only be rolled back."""

    awaited: Literal[False]

    def enqueue(self, job: Job) -> Job:
        """As ``Queue.enqueue``; workers see the job at the commit."""

    def enqueue_many(self, jobs: Iterable[Job]) -> list[Job]: ...
    def ack(self, job: Job) -> None:
        """As ``Queue.ack``: with the writes of the same transaction, which shall be rolled back on LeaseLost."""

    def nack(self, job: Job, delay: float = 0.0, error: BaseException | str | None = None) -> None: ...
    def release(self, job: Job, delay: float = 0.0) -> None: ...
    def bury(self, job: Job, error: BaseException | str | None = None) -> None: ...
    def processed(self, key: str) -> bool:
        """Note that ``key`` is processed in this transaction: True, or False when that was noted before, so that
        the work is done already. Waits for a transaction that is noting the same key. Keys are kept for each queue,
        until ``forget_processed``."""

    def forget_processed(self, older: float) -> int:
        """Forget the keys that were noted ``older`` seconds ago or before; returns how many there were."""


class AsyncWithin(Protocol):
    """The same calls, awaited."""

    awaited: Literal[True]

    async def enqueue(self, job: Job) -> Job: ...
    async def enqueue_many(self, jobs: Iterable[Job]) -> list[Job]: ...
    async def ack(self, job: Job) -> None: ...
    async def nack(self, job: Job, delay: float = 0.0, error: BaseException | str | None = None) -> None: ...
    async def release(self, job: Job, delay: float = 0.0) -> None: ...
    async def bury(self, job: Job, error: BaseException | str | None = None) -> None: ...
    async def processed(self, key: str) -> bool: ...
    async def forget_processed(self, older: float) -> int: ...


@runtime_checkable
class Queue(Inspect, Protocol):
    """A queue for sync callers, safe to share between threads."""

    @property
    def settings(self) -> Settings: ...
    @property
    def capabilities(self) -> Capabilities: ...
    @property
    def as_async(self) -> AsyncQueue:
        """The same queue for async callers."""

    @overload
    def within(self, connection: Suspends) -> AsyncWithin: ...
    @overload
    def within(self, connection: Blocks) -> Within: ...
    def within(self, connection: Any) -> Within | AsyncWithin:
        """The calls inside the transaction of ``connection``: one of psycopg, asyncpg, SQLAlchemy (a session too) or
        Django, on the queue's own database. They block or are awaited as it does, whichever face this is.
        Unsupported where ``capabilities.transactional`` is False; ConfigError for a connection of no use."""

    def enqueue(self, job: Job) -> Job:
        """Take the job in; returns it. Only the ``block`` policy waits.

        Checked in this order: QueueClosed, InvalidJob, QueueFull, DuplicateJob. Whatever the job carried
        from an earlier life, it starts with attempt 0 at the tail; the first enqueue time is kept.
        """

    def enqueue_many(self, jobs: Iterable[Job]) -> list[Job]:
        """Take all of them in, or none, in one round trip. Errors as in ``enqueue``."""

    def dequeue(self, timeout: float | None = None) -> Job | None:
        """Lease the first job: attempt + 1, a new fence and token, hidden until ``lease_until``.

        Waits up to ``timeout`` seconds (None: for ever; 0: not at all) and returns None when nothing came.
        Raises QueueClosed when the queue is closed and nothing is due any more.
        """

    def dequeue_many(self, limit: int, timeout: float | None = None) -> list[Job]:
        """Lease 1 to ``limit`` jobs, in order, in one round trip; [] when nothing came in time."""

    def ack(self, job: Job) -> None:
        """Done: the job is gone and its id is free."""

    def ack_many(self, jobs: Sequence[Job]) -> None:
        """Ack all in one round trip. LeaseLost names those that were lost; the others are done."""

    def nack(self, job: Job, delay: float = 0.0, error: BaseException | str | None = None) -> None:
        """Failed: again after ``delay`` seconds while attempts are left, else dead. Keeps ``error``."""

    def extend(self, job: Job, seconds: float) -> Job:
        """The lease ends ``seconds`` (> 0) from now: later than before, or sooner. Returns a new snapshot,
        whose ``cancelled`` tells whether somebody asked for the job to be cancelled."""

    def extend_many(self, jobs: Sequence[Job], seconds: float) -> list[Job]:
        """Extend all in one round trip; returns new snapshots of those whose lease still holds, in order.
        The lost ones are missing; nothing is raised for them and nothing counted, since a heartbeat asks for
        all it holds, also for what is being settled in that very moment."""

    def release(self, job: Job, delay: float = 0.0) -> None:
        """Give the job and its attempt back: not a failure (shutdown, snooze)."""

    def release_many(self, jobs: Sequence[Job], delay: float = 0.0) -> None:
        """Release all in one round trip. LeaseLost names those that were lost; the others are released."""

    def bury(self, job: Job, error: BaseException | str | None = None) -> None:
        """Dead at once, whatever attempts are left."""

    def cancel(self, job: Job | str) -> bool:
        """By id: True when a waiting job was removed, so that it will never start. A running one is told
        at its next heartbeat and is not retried any more: False, as for an id that is not there.
        By a leased job: done as cancelled, True; or LeaseLost."""

    def take_dead(self, limit: int) -> list[Job]:
        """Take the longest dead out, at most ``limit`` (0 or less: none): they are the caller's now."""

    def replay(self, limit: int | None = None, ids: Sequence[str] | None = None) -> int:
        """Dead letters back to ready: attempt 0, a new place at the tail, the first enqueue time kept.
        The longest dead first, at most ``limit`` or those named; atomically. Returns how many. Those for
        which there is no room, or whose id is in use again, stay dead."""

    def pause(self) -> None:
        """Hand out nothing until ``resume``; enqueue goes on. Holds for everyone who shares the queue."""

    def resume(self) -> None:
        """Hand out again."""

    def close(self) -> None:
        """No new jobs through this handle; what is due is still handed out, then QueueClosed. Wakes every
        waiter. A durable queue keeps what is not due; a memory queue drops it, counted and logged."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@runtime_checkable
class AsyncQueue(Protocol):
    """The same calls, awaited. Cancelling a call that waits takes no job and burns no attempt."""

    @property
    def settings(self) -> Settings: ...
    @property
    def capabilities(self) -> Capabilities: ...
    @property
    def as_sync(self) -> Queue:
        """The same queue for sync callers."""

    @overload
    def within(self, connection: Suspends) -> AsyncWithin: ...
    @overload
    def within(self, connection: Blocks) -> Within: ...
    def within(self, connection: Any) -> Within | AsyncWithin: ...
    async def stats(self) -> Stats: ...
    async def find(self, id: str) -> Job | None: ...
    async def dead(self, limit: int = 100, after: Job | None = None) -> list[Job]: ...
    async def enqueue(self, job: Job) -> Job: ...
    async def enqueue_many(self, jobs: Iterable[Job]) -> list[Job]: ...
    async def dequeue(self, timeout: float | None = None) -> Job | None: ...
    async def dequeue_many(self, limit: int, timeout: float | None = None) -> list[Job]: ...
    async def ack(self, job: Job) -> None: ...
    async def ack_many(self, jobs: Sequence[Job]) -> None: ...
    async def nack(self, job: Job, delay: float = 0.0, error: BaseException | str | None = None) -> None: ...
    async def extend(self, job: Job, seconds: float) -> Job: ...
    async def extend_many(self, jobs: Sequence[Job], seconds: float) -> list[Job]: ...
    async def release(self, job: Job, delay: float = 0.0) -> None: ...
    async def release_many(self, jobs: Sequence[Job], delay: float = 0.0) -> None: ...
    async def bury(self, job: Job, error: BaseException | str | None = None) -> None: ...
    async def cancel(self, job: Job | str) -> bool: ...
    async def take_dead(self, limit: int) -> list[Job]: ...
    async def replay(self, limit: int | None = None, ids: Sequence[str] | None = None) -> int: ...
    async def pause(self) -> None: ...
    async def resume(self) -> None: ...
    async def close(self) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
