"""A pool at work: puts its parts together, keeps its loops going, stops in two beats.

    fetch ─► floor: Run ─► (ahead) ─► a runner (loop, thread, process) ─► settler ─► somebody is free again
                    └──── heartbeat: keeps the lease, tells the run to stop

Everything here happens on one event loop, but for ``tell`` and ``fail_from_thread``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, get_args

from ..clock import FAR
from ..queue import AsyncQueue, Queue
from ..text import describe
from .balance import Balance
from .call import Resolver
from .events import Phase, PoolState, Verdict
from .fetch import POLL, Fetcher
from .floor import Floor
from .health import PoolFailed, Summary
from .heartbeat import Heartbeat
from .options import Options
from .outcome import Stop
from .run import Run, after
from .waiting import Outage, rounds, sleep, wait
from .watch import LoopWatch

log = logging.getLogger("headrace.pool")

LAST_WORD = 1.0
"""Seconds, after the drain, for handlers to notice their cancellation and for their jobs to be given back."""
HUNG = 30.0
"""Seconds without an answer from the store, which promises bounded waits, after which the pool gives up."""


class Engine:
    """Made when a pool starts; gone when it has stopped."""

    def __init__(self, queue: AsyncQueue, store: Queue, resolver: Resolver, options: Options) -> None:
        self._clock = queue.settings.clock
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._quit = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._drain_until = FAR
        self._forced = False
        self.reason = ""
        self.error: PoolFailed | None = None
        self.phase: Phase = "new"

        self.heart = Heartbeat(store, options.interval, self.tell, self.fail_from_thread)
        self._held = self.heart.held
        self.floor = Floor(queue, resolver, options, self._held, self.heart.coming, self._quit, self.fail)
        self.fetcher = Fetcher(queue, store, self.floor, self._quit, self._drained, self.fail)
        self.watch = LoopWatch(self._loop, self._who_is_busy)

    # -- the whole way ------------------------------------------------------------------------------------

    async def work(self) -> None:
        """Until stopped, or the queue is closed and drained."""
        self.heart.pulse.end()  # alive from now on
        self.heart.start()
        self.watch.start()
        self._enter("running", "started")
        self.floor.resized()
        self.fetcher.go_on()
        settler, foreman = self.floor.settler, self.floor.foreman
        self._keep(settler.outage, settler.round)
        self._keep(Outage("minding the pool"), self._mind)
        if self._options.balance is not None:
            self._keep(Outage("balancing the pool"), foreman.round)
        await self._quit.wait()

    async def wind_up(self) -> None:
        """In two beats: take no more and let what runs finish in time; then cancel the rest and give it back."""
        self._enter("draining", self.reason)
        self.floor.clear()
        await self.fetcher.stop(LAST_WORD)
        self.floor.clear()
        while self._held and self._clock.steady() < self._drain_until:
            await wait(self.floor.freed, self._clock, self._drain_until)
        self._forced |= bool(self._held)
        for run in list(self._held):
            run.stop(Stop.DRAIN)
        until = after(self._clock, LAST_WORD)
        while self._held and self._clock.steady() < until:
            await wait(self.floor.freed, self._clock, until)
        if self._held:
            log.warning("%d jobs could not be given back: they return when their leases end", len(self._held))

    async def close(self) -> None:
        """Leave nothing behind."""
        tasks = [*self._tasks, *([] if self.fetcher.task is None else [self.fetcher.task])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=LAST_WORD)
        self.heart.stop()
        self.watch.stop()
        for runner in self.floor.runners.values():
            runner.close()
        self._enter("stopped", self.reason)

    def stop(self, drain: float, reason: str) -> None:
        """The first time: drain. Again: no more time."""
        if self._stopping:
            self._forced = True
            self._drain_until = self._clock.steady()
        else:
            self._stopping = True
            self.reason = reason
            self._drain_until = after(self._clock, drain)
        self._quit.set()
        self.floor.freed.set()  # whoever waits there looks again

    def fail(self, why: str, error: BaseException | None = None) -> None:
        """The pool cannot go on: stop, and let ``run`` raise."""
        if self.error is None:
            log.error("the pool stops: %s", why)
            self.error = PoolFailed(f"the pool stopped: {why}")
            self.error.__cause__ = error
            if not self._stopping:
                self.stop(self._options.drain, why)

    def tell(self, run: Run, stop: Stop) -> None:
        """From any thread: the handler is told at once, even while it blocks the loop; the rest follows."""
        run.context.tell(stop)
        self._soon(run.stop, stop)

    def fail_from_thread(self, error: Exception) -> None:
        self._soon(self.fail, f"heartbeats fail: {describe(error)}", error)

    def resize(self, workers: int | None, balance: Balance | None) -> None:
        """To so many workers, or between other limits."""
        if workers is not None:
            self.floor.foreman.pin(workers)
        elif balance is not None:
            self.floor.foreman.rebalance(balance)

    def summary(self) -> Summary:
        verdicts = {name: self.floor.tally[name] for name in get_args(Verdict)}
        return Summary(
            reason=self.reason,
            forced=self._forced,
            picked_up=self.floor.tally["picked up"],
            left=len(self._held),
            **verdicts,
        )

    def complaints(self) -> list[str]:
        """What keeps the pool from working; judged by what its loops last got done."""
        found = []
        beat = self.heart.pulse.age or 0.0
        if beat > 2 * self._options.interval + 0.5:
            found.append(f"the last heartbeat was {beat:.1f} s ago")
        for doing, pulse, outage in (
            ("fetching", self.fetcher.pulse, self.fetcher.outage),
            ("settling", self.floor.settler.pulse, self.floor.settler.outage),
        ):
            if outage.now:
                found.append(f"{doing} fails")
            elif pulse.waiting > 2 * POLL:
                found.append(f"{doing} has hung for {pulse.waiting:.1f} s")
        if self.watch.lag:
            found.append(f"the event loop has been blocked for {self.watch.lag:.1f} s")
        if self.floor.zombies > self._options.zombies:
            found.append(f"{self.floor.zombies} handlers were written off and still run")
        return found

    # -- the loops ----------------------------------------------------------------------------------------

    def _keep(self, outage: Outage, work: Callable[[], Awaitable[bool | None]]) -> None:
        self._tasks.append(self._loop.create_task(rounds(outage, work, self._clock, self.fail)))

    async def _mind(self) -> None:
        await sleep(self._clock, self._options.interval)
        if self.heart.pulse.waiting > self._options.interval:
            self.heart.expire()  # it hangs in the store and cannot do it itself
        for doing, pulse in (
            ("the heartbeat", self.heart.pulse),
            ("fetching", self.fetcher.pulse),
            ("settling", self.floor.settler.pulse),
        ):
            if pulse.waiting > HUNG:
                self.fail(f"{doing} has hung for {pulse.waiting:.0f} s")

    # -- the rest -----------------------------------------------------------------------------------------

    def _enter(self, phase: Phase, reason: str) -> None:
        self.phase = phase
        log.info("pool %s: %s (%s)", self._options.name, phase, reason)
        self.floor.notify(PoolState(phase, reason))

    def _drained(self) -> None:
        self.reason = self.reason or "the queue is closed and drained"
        self._quit.set()

    def _soon(self, call: Callable[..., object], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:
            pass  # the loop is closed: nothing is left to be told

    def _who_is_busy(self) -> str:
        run = self.floor.loops.busy()
        if run is not None:
            return f"{run.name} (job {run.job.id!r})"
        names = sorted({run.name for run in list(self._held) if run.runner is self.floor.loops})
        return f"something that these handlers began, or none of them: {', '.join(names[:5]) or 'none runs'}"
