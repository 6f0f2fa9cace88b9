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
from .health import Pulse
from .run import Run, lease_of
from .settle import Ack, Action, Bury, CancelJob, Nack, Nothing, Release

log = logging.getLogger(__name__)


class Settler:
    """``settled(run, verdict)`` is called once for each run that was added."""

    def __init__(self, queue: AsyncQueue, settled: Callable[[Run, Verdict], None]) -> None:
        self._queue = queue
        self._clock: Clock = queue.settings.clock
        self._settled = settled
        self._todo: list[tuple[Run, Action]] = []
        self._news = asyncio.Event()
        self.pulse = Pulse(self._clock)

    def add(self, run: Run, action: Action) -> None:
        run.settling = True
        self._todo.append((run, action))
        self._news.set()

    async def round(self) -> None:
        """Wait for something to write, and write it. What could not be written stays for the next round, as
        long as its lease may hold, and the error is raised."""
        while not self._todo:
            self._news.clear()
            await self._news.wait()
        batch, self._todo = self._todo, []
        for run, _ in batch:
            run.settling = True
        self.pulse.begin()
        try:
            await self._acks(batch)
            await self._others(batch)
        except Exception:
            for run, _ in batch:
                run.settling = False  # let the heartbeat keep its lease meanwhile
            self._todo = self._timely(batch) + self._todo
            raise
        finally:
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
            self._settled(run, "lost" if lease_of(run.job) in lost else "acked")

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
