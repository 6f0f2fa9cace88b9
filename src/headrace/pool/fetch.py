"""How many jobs a pool fetches, and when: for those who have nothing to do, and for the moment that follows.

It fetches as many jobs as it has free workers, and begins them at once. A job that waited in the worker would be out
of reach of the workers that have nothing to do, and would lose an attempt if the worker crashed before it was begun.
Only where the store has to be reached and the jobs are short it fetches some more: see ``ahead.py``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from ..clock import SECOND
from ..errors import QueueClosed
from ..job import Job
from ..queue import AsyncQueue
from .floor import Floor
from .health import Pulse
from .runners.loop import TURN
from .waiting import Outage, rounds, wait

POLL = 5.0
"""Seconds for which one fetch waits for a job: an answer at least that often shows that fetching works."""


class Fetcher:
    """Brings jobs to the floor, until ``quit`` is set. ``drained()`` is called when there will be no more;
    ``give_up(why, error)`` when fetching only fails."""

    def __init__(
        self,
        queue: AsyncQueue,
        floor: Floor,
        quit: asyncio.Event,
        drained: Callable[[], None],
        give_up: Callable[[str, Exception], None],
    ) -> None:
        self._queue = queue
        self._clock = queue.settings.clock
        self._floor = floor
        self._quit = quit
        self._drained = drained
        self._give_up = give_up
        self.task: asyncio.Task[None] | None = None
        self._turn = 0.0
        """When, by the machine's clock, the loop's other tasks have their turn."""
        self.pulse = Pulse(self._clock)
        self.outage = Outage("fetching jobs")

    def go_on(self) -> None:
        """Fetch in a new task: the last one, if there was one, belongs to a handler now."""
        work = rounds(self.outage, self._round, self._clock, self._give_up)
        self.task = asyncio.get_running_loop().create_task(work)

    async def stop(self, seconds: float) -> None:
        """Fetch no more. Waits for what is under way, but no longer than that."""
        if self.task is not None:
            if not self._floor.settler.lent:  # else it ends when it has written down what it has in its hands
                self.task.cancel()
            await asyncio.wait([self.task], timeout=seconds)

    async def _round(self) -> bool:
        if self._quit.is_set():
            return True
        floor = self._floor
        foreman = floor.foreman
        while (limit := self._wanted()) <= 0 and not floor.deserted:
            await self._until_freed()
        # While nobody is free it takes what is there and waits for no more: that would wait here once more.
        patience = POLL if foreman.free() > 0 else 0.0
        answered = closed = False
        held = bool(floor.held)
        jobs: list[Job] = []
        self.pulse.begin()
        try:
            # Where nobody is there, what is ready is left to others, and a look without a wait tells of the end.
            if limit > 0 or not (await self._queue.stats()).ready:
                jobs = await self._queue.dequeue_many(max(limit, 1), patience)
            answered = True
        except QueueClosed:
            answered = closed = True
        finally:
            self.pulse.end(answered)
        foreman.closed = closed
        if jobs:
            return await self._hand_over(jobs)
        if closed and not floor.held:
            if held:
                return False  # what was held may have been given back after the look
            self._drained()
            return True
        if closed or (not patience and foreman.free() <= 0):
            await self._until_freed()  # what is held may yet be given back, and would then be due
        return False

    def _wanted(self) -> int:
        """How many jobs to fetch: for those who have none and, once half of what may wait is gone, for the moment
        that follows."""
        floor = self._floor
        room, waiting = floor.ahead.room, len(floor.ahead.waiting)
        if waiting and 2 * waiting > room:
            return 0
        free = floor.foreman.free()
        if not room or floor.settler.outage.now:
            return free
        return max(free, 0) + room - waiting

    async def _until_freed(self) -> None:
        """Or, where nobody is there, for a while: nothing tells those of the end but a look now and then."""
        freed = self._floor.freed
        freed.clear()
        if self._floor.deserted:
            await wait(freed, self._clock, self._clock.steady() + round(POLL * SECOND))
        else:
            await freed.wait()

    async def _hand_over(self, jobs: list[Job]) -> bool:
        """This task takes the first steps of the async handlers itself, and writes down what has ended by then: jobs
        that need no waiting need no other task either. The first handler that waits keeps the task (True), and
        fetching goes on in another."""
        floor, task = self._floor, self.task
        loops, settler = floor.loops, floor.settler
        assert task is not None
        loops.lead(task)
        settler.expected = True
        try:
            floor.take_in(jobs)
        finally:
            rest = loops.first_steps(task)
            settler.expected = False
        if rest is None:
            if settler.outage.now or floor.ahead.room:
                settler.wake()  # it tries again in its own time, or writes while we fetch
            else:
                await settler.write_here()
            if time.monotonic() >= self._turn:
                await asyncio.sleep(0)
                self._turn = time.monotonic() + TURN
            return False
        settler.wake()
        self.go_on()
        await rest
        return True
