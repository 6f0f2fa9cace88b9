"""Claim checks: arguments that are too large for a queue are kept outside, and the payload says where.

They are written, and on the disk, before their job is enqueued, under a name that nothing had before. So a crash
between the two leaves an object without a job, never a job without its object. The call that a worker makes fetches
them first: where the handler runs, so it counts into its timeout, blocks nobody else, and fails the attempt where it
fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from ..errors import DuplicateJob, InvalidJob, QueueClosed, QueueFull, StorageFull
from ..job import Job
from ..pool.aside import in_thread
from ..pool.call import import_path, load
from ..pool.context import current
from .codec import Envelope, Place, Unfit
from .outside import Outside

if TYPE_CHECKING:
    from .task import Task

_REFUSALS = (InvalidJob, DuplicateJob, QueueFull, QueueClosed, StorageFull)
"""After these nothing was enqueued. After any other error it may have been, so the object stays."""


def sent(outside: Outside | None, queue: str, jobs: list[Job]) -> _Sent | nullcontext[list[Job]]:
    """Within it, sync or async, enqueue the jobs that it gives. What is too large has been written by then, and is
    removed again where the queue refuses them."""
    if outside is None or not any(len(job.payload) > outside.above for job in jobs):
        return nullcontext(jobs)
    return _Sent(outside, queue, jobs)


class _Sent:
    def __init__(self, outside: Outside, queue: str, jobs: list[Job]) -> None:
        self._outside = outside
        self._given = (queue, jobs)
        self._names: list[str] = []

    def __enter__(self) -> list[Job]:
        jobs, self._names = self._outside.keep(*self._given)
        return jobs

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, _REFUSALS):
            self._outside.remove(self._names)

    async def __aenter__(self) -> list[Job]:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            await asyncio.to_thread(self.__exit__, kind)


def fetching(task: Task[Any, Any], stored: Envelope) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """What to call, and with what, for the running job."""
    if task.kind == "process":
        return _fetch_and_call, (import_path(task), stored.v, stored.outside)
    return _fetch_and_await if task.kind == "async" else _fetch_and_call, (task, stored.v, stored.outside)


def _fetch_and_call(task: Task[Any, Any] | str, version: int, place: Place) -> object:
    task = load(task) if isinstance(task, str) else task
    positional, named = _fetch(task, version, place)
    result: object = task(*positional, **named)
    return result


async def _fetch_and_await(task: Task[Any, Any], version: int, place: Place) -> None:
    positional, named = await in_thread(_fetch, task, version, place)
    await task(*positional, **named)


def _fetch(task: Task[Any, Any], version: int, place: Place) -> tuple[tuple[Any, ...], dict[str, Any]]:
    assert task.app.outside is not None
    try:
        return task.arguments(version, task.app.outside.load(place))
    except Unfit as unfit:
        raise InvalidJob(current().job.id, f"task {task.name!r}: {unfit}") from None
