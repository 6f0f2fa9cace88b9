"""How many jobs a pool fetches, and when: for those who have nothing to do, and for the moment that follows.

It fetches as many jobs as it has free workers, and begins them at once. A job that waited in the worker would be out
of reach of the workers that have nothing to do, and would lose an attempt if the worker crashed before it was begun.
Only where the store has to be reached and the jobs are short it fetches some more: see ``ahead.py``. There, as long
as there are more, the next fetch is under way while the jobs of the last one are begun: in a thread, so that the
heartbeat keeps the leases of what it brings even while a handler blocks the loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from ..clock import SECOND
from ..errors import QueueClosed
from ..queue import AsyncQueue, Queue
from .floor import Floor
from .health import Pulse
from .run import Run
from .runners.loop import TURN
from .waiting import Outage, rounds, wait

POLL = 5.0
"""Seconds for which one fetch waits for a job: an answer at least that often shows that fetching works."""
_A_MOMENT = 1e-6
"""Seconds; the shortest sleep there is, which takes some fifty times as long."""


class Fetcher:
    """Brings jobs to the floor, until ``quit`` is set. ``drained()`` is called when there will be no more;
    ``give_up(why, error)`` when fetching only fails."""

    def __init__(
        self,
        queue: AsyncQueue,
        store: Queue,
        floor: Floor,
        quit: asyncio.Event,
        drained: Callable[[], None],
        give_up: Callable[[str, Exception], None],
    ) -> None:
        self._queue = queue
        self._store = store
        self._durable = queue.capabilities.durable
        """It has to be reached: elsewhere a fetch is over in no time."""
        self._clock = queue.settings.clock
        self._floor = floor
        self._quit = quit
        self._drained = drained
        self._give_up = give_up
        self.task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="headrace-fetch")
        self._next: asyncio.Future[list[Run]] | None = None
        """The fetch that was begun before the jobs of the last one were."""
        self._asked = 0
        """For how many jobs the last fetch asked."""
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
        if self._next is not None:
            await asyncio.wait([self._next], timeout=seconds)
            if self._next.done():
                under_way, self._next = self._next, None
                if not under_way.exception() and (runs := under_way.result()):
                    self._floor.take_in(runs)
        self._thread.shutdown(wait=False)

    async def _round(self) -> bool:
        if self._quit.is_set():
            return True
        floor = self._floor
        foreman = floor.foreman
        limit = 0
        while self._next is None and (limit := self._wanted()) <= 0 and not floor.deserted:
            await self._until_freed()
        # While nobody is free it takes what is there and waits for no more: that would wait here once more.
        patience = POLL if foreman.free() > 0 else 0.0
        answered = closed = False
        may_come_back = bool(floor.held) or self._next is not None
        runs: list[Run] = []
        self.pulse.begin()
        try:
            # Where nobody is there, what is ready is left to others, and a look without a wait tells of the end.
            if self._next is not None:
                await asyncio.wait([self._next])
                under_way, self._next = self._next, None
                runs = under_way.result()
            elif limit > 0 or not (await self._queue.stats()).ready:
                self._asked = max(limit, 1)
                runs = floor.enlist(await self._queue.dequeue_many(self._asked, patience))
            answered = True
        except QueueClosed:
            answered = closed = True
        finally:
            self.pulse.end(answered)
        foreman.closed = closed
        if runs:
            return await self._hand_over(runs)
        if closed and not floor.held:
            if may_come_back:
                return False  # what was held when that look began may have been given back since
            self._drained()
            return True
        if closed or (not patience and foreman.free() <= 0):
            await self._until_freed()  # what is held may yet be given back, and would then be due
        return False

    def _go_ahead(self, count: int) -> None:
        """The next fetch begins while so many jobs are at hand, where there are more and some may wait."""
        floor = self._floor
        room = floor.ahead.room
        if not (room and self._durable) or count < self._asked or floor.settler.outage.now or self._quit.is_set():
            return
        waiting = len(floor.ahead.waiting) + max(count - max(floor.foreman.free(), 0), 0)
        if 2 * waiting <= room:
            try:
                self._next = asyncio.wrap_future(self._thread.submit(self._fetch, room - waiting))
            except RuntimeError:
                return  # no thread can be had: the next fetch comes when it comes
            self._asked = room - waiting
            time.sleep(_A_MOMENT)  # the thread needs the interpreter, and would wait for it until these jobs are begun

    def _fetch(self, limit: int) -> list[Run]:
        """In the thread."""
        jobs = self._store.dequeue_many(limit, 0.0)
        if self._quit.is_set():
            self._store.release_many(jobs)
            jobs = []
        return self._floor.enlist(jobs)

    def _wanted(self) -> int:
        """How many jobs to fetch: for those who have none and, once half of what may wait is gone, for the moment
        that follows. The other half is for the fetch after that, which begins before these do."""
        floor = self._floor
        room, waiting = floor.ahead.room, len(floor.ahead.waiting)
        if waiting and 2 * waiting > room:
            return 0
        free = floor.foreman.free()
        if not room or floor.settler.outage.now:
            return free
        return max(free, 0) + min(room - waiting, (room + 1) // 2)

    async def _until_freed(self) -> None:
        """Or, where nobody is there, for a while: nothing tells those of the end but a look now and then."""
        freed = self._floor.freed
        freed.clear()
        if self._floor.deserted:
            await wait(freed, self._clock, self._clock.steady() + round(POLL * SECOND))
        else:
            await freed.wait()

    async def _hand_over(self, runs: list[Run]) -> bool:
        """This task takes the first steps of the async handlers itself, and writes down what has ended by then: jobs
        that need no waiting need no other task either. The first handler that waits keeps the task (True), and
        fetching goes on in another."""
        floor, task = self._floor, self.task
        loops, settler = floor.loops, floor.settler
        assert task is not None
        self._go_ahead(len(runs))
        loops.lead(task)
        settler.expected = True
        try:
            floor.take_in(runs)
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
