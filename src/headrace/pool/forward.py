"""How a job goes on to another queue.

In one step where both are in one store: it is never in both, nor in none. Otherwise it is enqueued there and then
acked here, under the same id: a worker that dies in between enqueues it a second time, which is refused while the
first one is unfinished. Once that is done, it runs again: at least once, as ever.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol, runtime_checkable

from ..errors import ConfigError, DuplicateJob, InvalidJob, QueueClosed, QueueFull, Unsupported
from ..job import Job
from ..queue import AsyncQueue, Queue
from ..rules import onward, to_itself
from .events import Verdict

log = logging.getLogger("headrace.pool")

NO_ROOM = 1.0
"""Seconds after which a job is tried again for which there is no room, and for which room is waited for."""


@runtime_checkable
class _InOneStep(Protocol):
    async def forward(self, job: Job, to: object) -> None: ...


async def forward(queue: AsyncQueue, job: Job, to: Queue | AsyncQueue, delay: float) -> Verdict:
    """Move a leased job. No room over there is not the job's fault and costs it no attempt; a refusal does, and
    it is tried again after ``delay`` seconds. Raises LeaseLost, and Unavailable where a store does not answer."""
    there: AsyncQueue = to.as_async if isinstance(to, Queue) else to
    try:
        await _move(queue, job, there)
    except (QueueFull, TimeoutError):
        log.warning("job %r: queue %r has no room; again in %g s", job.id, there.settings.queue, NO_ROOM)
        await queue.release(job, NO_ROOM)
        return "released"
    except (ConfigError, InvalidJob, QueueClosed) as error:
        log.warning("job %r cannot go on to queue %r: %s", job.id, there.settings.queue, error)
        await queue.nack(job, delay, error)
        return "nacked"
    return "acked"


async def _move(queue: AsyncQueue, job: Job, to: AsyncQueue) -> None:
    if to is queue:
        raise to_itself(queue.settings.queue)
    if isinstance(queue, _InOneStep):
        try:
            await queue.forward(job, to)
            return
        except Unsupported:
            pass
    async with asyncio.timeout(NO_ROOM):  # a full queue may make its producers wait, but not all that end here
        try:
            await to.enqueue(onward(job))
        except DuplicateJob:
            pass
    await queue.ack(job)
