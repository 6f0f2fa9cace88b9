"""Handlers made of handlers: ``transit``, ``chain``, ``async_chain``. Each is a handler again, so they nest.

Members are handlers as a pool takes them: async ones are awaited on the event loop, sync ones run in threads. A job
is one job still: it is acked when all of them have done their part, and a retry begins with the first one again, so
a member must bear being called twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import NoReturn, TypeAlias

from ..errors import ConfigError
from ..job import Job
from ..queue import AsyncQueue, Queue
from ..text import describe
from .aside import in_thread
from .call import Handler, kind_of, name_of
from .outcome import Forward, Raised
from .runners.threads import sound

log = logging.getLogger("headrace.pool")

_Step: TypeAlias = tuple[Handler, bool]
"""What to call, and whether it is to be awaited."""


class Composed:
    """The base: an async handler that logs show by what it is made of. ``moves``: it ends in a transit."""

    moves = False

    def __init__(self, what: str) -> None:
        self.__qualname__ = what

    def __repr__(self) -> str:
        return self.__qualname__

    async def __call__(self, job: Job) -> None:
        raise NotImplementedError


class Transit(Composed):
    """See ``transit``."""

    moves = True

    def __init__(self, to: Queue | AsyncQueue) -> None:
        Forward(to)  # what it cannot go to is refused now, not at the first job
        super().__init__(f"transit({to.settings.queue})")
        self._to = to

    async def __call__(self, job: Job) -> NoReturn:
        raise Forward(self._to)


class Chain(Composed):
    """See ``chain``."""

    def __init__(self, members: tuple[Handler, ...]) -> None:
        super().__init__(f"chain({_names(members)})")
        self._steps = _steps("chain", members)
        self.moves = _moves(members[-1])
        for member in members[:-1]:
            if _moves(member):
                raise ConfigError(f"chain: {member!r} ends the job here, so it must be the last of the chain")

    async def __call__(self, job: Job) -> None:
        for step in self._steps:
            await _take(step, job)


class AsyncChain(Composed):
    """See ``async_chain``."""

    def __init__(self, members: tuple[Handler, ...]) -> None:
        super().__init__(f"async_chain({_names(members)})")
        self._steps = _steps("async_chain", members)
        moving = [member for member in members if _moves(member)]
        self.moves = bool(moving)
        if len(moving) > 1:
            raise ConfigError(f"async_chain: {moving[0]!r} and {moving[1]!r}: a job can go on to one queue only")

    async def __call__(self, job: Job) -> None:
        ends: list[BaseException] = []
        tasks = [asyncio.create_task(_ending(step, job, ends)) for step in self._steps]
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            raise
        # A job goes on only when all that was to be done with it here has been done.
        ends.sort(key=lambda end: isinstance(end, Forward))
        for other in ends[1:]:
            if not isinstance(other, Forward):
                log.warning("job %r: %s failed too: %s", job.id, self, describe(other))
        if ends:
            raise ends[0]


def transit(to: Queue | AsyncQueue) -> Transit:
    """Forward each job to another queue: same payload, id, priority, deadline and ``max_attempts``, a fresh count
    of attempts. Where both queues are in one store (one SQLite file, one process's memory) it leaves this one and
    enters that one in one step; else it is enqueued there and then acked here, and an id that is unfinished there
    counts as done. A full target costs the job no attempt."""
    return Transit(to)


def chain(*members: Handler) -> Chain:
    """Call the members one after the other; the first that raises ends the chain, and what it raised (an error, a
    Snooze, a Discard, …) is how the job ends. A transit, which ends the job here, comes last."""
    return Chain(members)


def async_chain(*members: Handler) -> AsyncChain:
    """Call all members at once and wait for all of them. The first failure is how the job ends; the others are
    logged, and those still running finish. A transit among them takes effect when nothing has failed."""
    return AsyncChain(members)


def _steps(what: str, members: tuple[Handler, ...]) -> list[_Step]:
    if not members:
        raise ConfigError(f"{what}: has no members; give it at least one handler")
    return [(member, kind_of(member) == "async") for member in members]


def _moves(member: Handler) -> bool:
    return isinstance(member, Composed) and member.moves


def _names(members: tuple[Handler, ...]) -> str:
    return ", ".join(name_of(member).rpartition(":")[2] for member in members)


async def _take(step: _Step, job: Job) -> None:
    function, awaited = step
    result = function(job) if awaited else sound(await in_thread(function, job))
    if isinstance(result, Raised):
        assert isinstance(result.error, BaseException)
        raise result.error
    if isinstance(result, Awaitable):
        await result


async def _ending(step: _Step, job: Job, ends: list[BaseException]) -> None:
    """Take it, and note what it raised. BaseException: a SystemExit that left a task would end the loop."""
    try:
        await _take(step, job)
    except BaseException as error:
        ends.append(error)
