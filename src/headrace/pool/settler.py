"""Writes down how attempts ended: all that have ended since the last write, together.

No timer and no batch size: while one write is under way, what ends meanwhile makes up the next one. Alone, a job
waits for nobody. A slot is free only when its job is settled, so what is unsent is never more than the slots.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import takewhile
from typing import TypeAlias

from ..clock import Clock
from ..errors import LeaseLost
from ..job import Job
from ..queue import AsyncQueue
from .events import Verdict
from .forward import forward
from .health import Pulse
from .run import Run, lease_of
from .settle import ROLLED_BACK, Ack, Action, Bury, ByHand, CancelJob, Nack, Nothing, Onward, Release
from .waiting import Outage

log = logging.getLogger(__name__)

Lease: TypeAlias = tuple[str, str, int]
"""See ``lease_of``."""


class Settler:
    """``settled(runs, verdict)`` is called for the runs that were added, each once."""

    def __init__(self, queue: AsyncQueue, settled: Callable[[list[Run], Verdict], None]) -> None:
        self._queue = queue
        self._clock: Clock = queue.settings.clock
        self._told = settled
        self.unsent = 0
        """How many were added and are not settled yet."""
        self._acks: list[Run] = []
        self._others: list[tuple[Run, Action]] = []
        self._news = asyncio.Event()
        self.expected = False
        """Whoever makes runs end now calls ``write_here``, or ``wake``, right after."""
        self._writing = False
        self._error: Exception | None = None
        self.lent = False
        """``write_here`` is under way."""
        self.pulse = Pulse(self._clock)
        self.outage = Outage("settling jobs")

    def add(self, run: Run, action: Action) -> None:
        self.unsent += 1
        if isinstance(action, Ack):
            self._acks.append(run)
        else:
            self._others.append((run, action))
        if not self.expected:
            self._news.set()

    def acks(self, runs: list[Run]) -> None:
        """Add runs that are to be acked."""
        self._acks += runs
        self.unsent += len(runs)
        if not self.expected:
            self._news.set()

    async def round(self) -> None:
        """Wait for something to write, and write it. What could not be written stays for the next round, as
        long as its lease may hold, and the error is raised."""
        while self.lent or not self._anything:
            self._news.clear()
            await self._news.wait()
        error, self._error = self._error, None
        if error is not None:
            raise error
        await self._write()

    async def write_here(self) -> None:
        """Write in the caller's task what there is, which saves waking the settler's own. What cannot be written is
        left to that one, with the error. Not to be cancelled: nobody would know what was written."""
        if (self._acks or self._others) and not self._writing:
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
        if self._anything:
            self._news.set()

    @property
    def _anything(self) -> bool:
        return bool(self._acks or self._others or self._error)

    async def _write(self) -> None:
        acks, self._acks = self._acks, []
        others, self._others = self._others, []
        self.pulse.begin()
        self._writing = True
        written = False
        try:
            await self._ack(acks)
            await self._apply_all(others)
            written = True
        except Exception:
            for run in (*acks, *(run for run, _ in others)):
                run.settling = False  # let the heartbeat keep its lease meanwhile
            self._put_back(acks, others)
            raise
        finally:
            self._writing = False
            self.pulse.end(done=written)

    async def _ack(self, runs: list[Run]) -> None:
        """Those that are written are taken out of the list."""
        if not runs:
            return
        done = runs.copy()
        lost = await _lost(self._queue.ack_many, done)
        runs.clear()
        self._settled_but(lost, done, "acked")

    async def _apply_all(self, todo: list[tuple[Run, Action]]) -> None:
        """The same, for whatever is no ack; what goes back goes together."""
        while todo:
            run, action = todo[0]
            if isinstance(action, Release):
                await self._release(todo, action)
                continue
            run.settling = True  # not before: the heartbeat keeps the leases of those behind it
            try:
                verdict = await self._apply(run, action)
            except LeaseLost as error:
                _log_lost(error)
                verdict = "lost"
            del todo[0]
            self._settled([run], verdict)

    async def _release(self, todo: list[tuple[Run, Action]], action: Release) -> None:
        """The first of them, and those behind it that go back in the same way."""
        done = [run for run, _ in takewhile(lambda each: each[1] == action, todo)]
        lost = await _lost(partial(self._queue.release_many, delay=action.delay), done)
        del todo[: len(done)]
        self._settled_but(lost, done, "released")

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
            case ByHand(how, otherwise):
                if not await self._queue.extend_many([run.job], self._queue.settings.lease):
                    return how
                log.warning("job %r: %s", run.job.id, ROLLED_BACK)
                return await self._apply(run, otherwise)
            case CancelJob():
                await self._queue.cancel(run.job)
                return "cancelled"
            case Ack() | Nothing():
                raise AssertionError(f"{action} is not written by itself")

    def _settled(self, runs: list[Run], verdict: Verdict) -> None:
        self.unsent -= len(runs)
        self._told(runs, verdict)

    def _settled_but(self, lost: set[Lease], runs: list[Run], verdict: Verdict) -> None:
        if not lost:
            self._settled(runs, verdict)
            return
        for run in runs:
            self._settled([run], "lost" if lease_of(run.job) in lost else verdict)

    def _put_back(self, acks: list[Run], others: list[tuple[Run, Action]]) -> None:
        """For the next try; but those whose lease must be over are given up, for somebody else may run them by now."""
        now = self._clock.steady()
        late = [run for run in (*acks, *(run for run, _ in others)) if run.lease_end <= now]
        for run in late:
            log.warning("job %r: could not be settled before its lease ended; it will run again", run.job.id)
        self._acks = [run for run in acks if run.lease_end > now] + self._acks
        self._others = [(run, action) for run, action in others if run.lease_end > now] + self._others
        if late:
            self._settled(late, "lost")


async def _lost(settle: Callable[[list[Job]], Awaitable[None]], runs: list[Run]) -> set[Lease]:
    """Settle them together; returns the leases that were lost, if any."""
    for run in runs:
        run.settling = True
    try:
        await settle([run.context.job for run in runs])
    except LeaseLost as error:
        _log_lost(error)
        return {lease_of(job) for job in error.jobs}
    return set()


def _log_lost(error: LeaseLost) -> None:
    log.warning("%s", error)
