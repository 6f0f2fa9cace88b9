"""Writes down how attempts ended: all that have ended since the last write, together.

No timer and no batch size: while one write is under way, what ends meanwhile makes up the next one. Alone, a job
waits for nobody. A slot is free only when its job is settled, so what is unsent is never more than the slots.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ..clock import Clock
from ..errors import LeaseLost
from ..queue import AsyncQueue
from .events import Verdict
from .forward import forward
from .health import Pulse
from .run import Run, lease_of
from .settle import Ack, Action, Bury, CancelJob, Nack, Nothing, Onward, Release

log = logging.getLogger(__name__)


class Settler:
    """``settled(run, verdict)`` is called once for each run that was added."""

    def __init__(self, queue: AsyncQueue, settled: Callable[[Run, Verdict], None]) -> None:
        self._queue = queue
        self._clock: Clock = queue.settings.clock
        self._settled = settled
        self._todo: list[tuple[Run, Action]] = []
        self._news = asyncio.Event()
        self.expected = False
        """Whoever makes runs end now calls ``write_here``, or ``wake``, right after."""
        self._writing = False
        self._error: Exception | None = None
        self.lent = False
        """``write_here`` is under way."""
        self.pulse = Pulse(self._clock)

    def add(self, run: Run, action: Action) -> None:
        run.settling = True
        if not self._todo and not self.expected:
            self._news.set()
        self._todo.append((run, action))

    async def round(self) -> None:
        """Wait for something to write, and write it. What could not be written stays for the next round, as
        long as its lease may hold, and the error is raised."""
        while self.lent or not (self._todo or self._error):
            self._news.clear()
            await self._news.wait()
        error, self._error = self._error, None
        if error is not None:
            raise error
        await self._write()

    async def write_here(self) -> None:
        """Write in the caller's task what there is, which saves waking the settler's own. What cannot be written is
        left to that one, with the error. Not to be cancelled: nobody would know what was written."""
        if self._todo and not self._writing:
            self.lent = True
            try:
                await self._write()
            except Exception as error:
                self._error = error
            finally:
                self.lent = False
        self.wake()

    def wake(self) -> None:
        """There may be something to write."""
        if self._todo or self._error:
            self._news.set()

    async def _write(self) -> None:
        batch, self._todo = self._todo, []
        for run, _ in batch:
            run.settling = True
        self.pulse.begin()
        self._writing = True
        try:
            await self._acks(batch)
            await self._others(batch)
        except Exception:
            for run, _ in batch:
                run.settling = False  # let the heartbeat keep its lease meanwhile
            self._todo = self._timely(batch) + self._todo
            raise
        finally:
            self._writing = False
            self.pulse.end(done=not batch)

    async def _acks(self, batch: list[tuple[Run, Action]]) -> None:
        runs = [run for run, action in batch if isinstance(action, Ack)]
        if not runs:
            return
        lost: set[tuple[str, str, int]] = set()
        try:
            await self._queue.ack_many([run.job for run in runs])
        except LeaseLost as error:
            _log_lost(error)
            lost = {lease_of(job) for job in error.jobs}
        batch[:] = [item for item in batch if not isinstance(item[1], Ack)]
        for run in runs:
            self._settled(run, "lost" if lost and lease_of(run.job) in lost else "acked")

    async def _others(self, batch: list[tuple[Run, Action]]) -> None:
        while batch:
            run, action = batch[0]
            try:
                verdict = await self._apply(run, action)
            except LeaseLost as error:
                _log_lost(error)
                verdict = "lost"
            del batch[0]
            self._settled(run, verdict)

    async def _apply(self, run: Run, action: Action) -> Verdict:
        match action:
            case Nack(delay, error):
                await self._queue.nack(run.job, delay, error)
                return "nacked"
            case Release(delay):
                await self._queue.release(run.job, delay)
                return "released"
            case Bury(error):
                await self._queue.bury(run.job, error)
                return "buried"
            case Onward(to, delay):
                return await forward(self._queue, run.job, to, delay)
            case CancelJob():
                await self._queue.cancel(run.job)
                return "cancelled"
            case Ack() | Nothing():
                raise AssertionError(f"{action} is not written by itself")

    def _timely(self, batch: list[tuple[Run, Action]]) -> list[tuple[Run, Action]]:
        """Those whose lease may still hold; the others are given up, for somebody else may run them by now."""
        now = self._clock.steady()
        late = [run for run, _ in batch if run.lease_end <= now]
        for run in late:
            log.warning("job %r: could not be settled before its lease ended; it will run again", run.job.id)
            self._settled(run, "lost")
        return [(run, action) for run, action in batch if run.lease_end > now]


def _log_lost(error: LeaseLost) -> None:
    log.warning("%s", error)
