"""A pool at work: keeps the slots filled, settles what ends, stops in two beats.

It never fetches more jobs than it has free slots, so whatever is fetched begins at once. A job that waited in
the worker would spend its lease waiting, would lose an attempt if the worker crashed before it was begun, and
would be out of reach of the workers that have nothing to do.

    fetch ─► Run ─► a runner (loop, thread, process) ─► settler ─► the slot is free again
               └──── heartbeat: keeps the lease, tells the run to stop

Everything here happens on one event loop, but for ``tell`` and ``fail_from_thread``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, get_args

from .. import check
from ..clock import FAR, SECOND
from ..errors import QueueClosed
from ..job import Job
from ..queue import AsyncQueue, Queue
from ..text import describe
from .call import Kind, Resolver, retry_of
from .events import Event, Finished, Phase, PoolState, Started, Verdict
from .health import PoolFailed, Pulse, Summary
from .heartbeat import Heartbeat
from .options import Options
from .outcome import NEVER, Raised, Stop
from .report import report
from .retry import DEFAULT
from .run import Run, Runner, after
from .runners import LoopRunner, ProcessRunner, ThreadRunner
from .settle import Action, Bury, Nack, Nothing, decide
from .settler import Settler
from .waiting import Outage, sleep, wait
from .watch import LoopWatch

log = logging.getLogger("headrace.pool")

LAST_WORD = 1.0
"""Seconds, after the drain, for handlers to notice their cancellation and for their jobs to be given back."""
POLL = 5.0
"""Seconds for which one fetch waits for a job: an answer at least that often shows that fetching works."""
HUNG = 30.0
"""Seconds without an answer from the store, which promises bounded waits, after which the pool gives up."""


class Engine:
    """Made when a pool starts; gone when it has stopped."""

    def __init__(self, queue: AsyncQueue, store: Queue, resolver: Resolver, options: Options) -> None:
        self._queue = queue
        self._clock = queue.settings.clock
        self._lease = queue.settings.lease
        self._resolver = resolver
        self._options = options
        self._loop = loop = asyncio.get_running_loop()
        self._running: dict[Run, None] = {}
        self._freed = asyncio.Event()
        self._changed = asyncio.Event()
        self._quit = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._fetcher: asyncio.Task[None] | None = None
        self._tally: Counter[str] = Counter()
        self._listener = options.listener
        self._stopping = False
        self._drain_until = FAR
        self._forced = False
        self.reason = ""
        self.error: PoolFailed | None = None
        self.phase: Phase = "new"

        self.fetching = Pulse(self._clock)
        self.fetch_outage = Outage("fetching jobs")
        self.settler = Settler(queue, self._settled)
        self.settle_outage = Outage("settling jobs")
        self.heart = Heartbeat(store, options.interval, self.tell, self.fail_from_thread)
        self._loops = LoopRunner(loop, self._clock)
        self._runners: dict[Kind, Runner] = {
            "async": self._loops,
            "thread": ThreadRunner(loop, options.name, self._loops),
            "process": ProcessRunner(loop, options.name, self._clock),
        }
        self.watch = LoopWatch(loop, self._who_is_busy)

    # -- the whole way ------------------------------------------------------------------------------------

    async def work(self) -> None:
        """Until stopped, or the queue is closed and drained."""
        self.heart.pulse.end()  # alive from now on
        self.heart.start()
        self.watch.start()
        self._enter("running", "started")
        self._fetcher = self._keep(self.fetch_outage, self._fetch)
        self._keep(self.settle_outage, self.settler.round)
        self._keep(Outage("minding the pool"), self._mind)
        await self._quit.wait()

    async def wind_up(self) -> None:
        """In two beats: take no more and let what runs finish in time; then cancel the rest and give it back."""
        self._enter("draining", self.reason)
        if self._fetcher is not None:
            self._fetcher.cancel()
            await asyncio.wait([self._fetcher], timeout=LAST_WORD)
        while self._running and self._clock.steady() < self._drain_until:
            await wait(self._changed, self._clock, self._drain_until)
        self._forced |= bool(self._running)
        for run in list(self._running):
            run.stop(Stop.DRAIN)
        until = after(self._clock, LAST_WORD)
        while self._running and self._clock.steady() < until:
            await wait(self._changed, self._clock, until)
        if self._running:
            log.warning("%d jobs could not be given back: they return when their leases end", len(self._running))

    async def close(self) -> None:
        """Leave nothing behind."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LAST_WORD)
        self.heart.stop()
        self.watch.stop()
        for runner in self._runners.values():
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
        self._changed.set()

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

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def zombies(self) -> int:
        return sum(runner.zombies for runner in self._runners.values())

    def summary(self) -> Summary:
        verdicts = {name: self._tally[name] for name in get_args(Verdict)}
        return Summary(
            reason=self.reason,
            forced=self._forced,
            picked_up=self._tally["picked up"],
            left=len(self._running),
            **verdicts,
        )

    def complaints(self) -> list[str]:
        """What keeps the pool from working; judged by what its loops last got done."""
        found = []
        beat = self.heart.pulse.age or 0.0
        if beat > 2 * self._options.interval + 0.5:
            found.append(f"the last heartbeat was {beat:.1f} s ago")
        for doing, pulse, outage in (
            ("fetching", self.fetching, self.fetch_outage),
            ("settling", self.settler.pulse, self.settle_outage),
        ):
            if outage.now:
                found.append(f"{doing} fails")
            elif pulse.waiting > 2 * POLL:
                found.append(f"{doing} has hung for {pulse.waiting:.1f} s")
        if self.watch.lag:
            found.append(f"the event loop has been blocked for {self.watch.lag:.1f} s")
        if self.zombies > self._options.zombies:
            found.append(f"{self.zombies} handlers were written off and still run")
        return found

    # -- the loops ----------------------------------------------------------------------------------------

    def _keep(self, outage: Outage, work: Callable[[], Awaitable[bool | None]]) -> asyncio.Task[None]:
        """Do one round of work after the other, until one says that it was the last. One that fails is tried
        again, more and more slowly; one that only fails brings the pool down, for a pool that looks alive and
        does nothing is worse."""

        async def rounds() -> None:
            done: bool | None = False
            while not done:
                try:
                    done = await work()
                except Exception as error:
                    seconds = outage.failed(error)
                    if outage.hopeless:
                        self.fail(f"{outage.doing} fails: {describe(error)}", error)
                    await sleep(self._clock, seconds)
                else:
                    outage.over()

        task = self._loop.create_task(rounds())
        self._tasks.append(task)
        return task

    async def _fetch(self) -> bool:
        while (free := self._options.workers - len(self._running)) <= 0:
            self._freed.clear()
            await self._freed.wait()
        self.fetching.begin()
        answered = closed = False
        jobs: list[Job] = []
        try:
            jobs = await self._queue.dequeue_many(free, POLL)
            answered = True
        except QueueClosed:
            answered = closed = True
        finally:
            self.fetching.end(answered)
        for job in jobs:
            self._begin(job)
        if closed and self._running:
            self._freed.clear()
            await self._freed.wait()  # what runs may yet be given back, and would then be due
        elif closed:
            self.reason = self.reason or "the queue is closed and drained"
            self._quit.set()
            return True
        return False

    async def _mind(self) -> None:
        await sleep(self._clock, self._options.interval)
        if self.heart.pulse.waiting > self._options.interval:
            self.heart.expire()  # it hangs in the store and cannot do it itself
        for doing, pulse in (
            ("the heartbeat", self.heart.pulse),
            ("fetching", self.fetching),
            ("settling", self.settler.pulse),
        ):
            if pulse.waiting > HUNG:
                self.fail(f"{doing} has hung for {pulse.waiting:.0f} s")

    # -- the way of a job ---------------------------------------------------------------------------------

    def _begin(self, job: Job) -> None:
        run = Run(job, self._clock, after(self._clock, self._lease), self._ended)
        self._running[run] = None
        self._tally["picked up"] += 1
        self.heart.hold(run)
        if self._quit.is_set():
            run.stop(Stop.DRAIN)
            run.answer(NEVER)
            return
        try:
            run.call = call = self._resolver.resolve(job)
            run.runner = runner = self._runners[call.kind]
            timeout = self._options.timeout if call.timeout is None else call.timeout
            if timeout is not None:
                check.duration("timeout", timeout, zero=False)
                run.timeout = timeout
            if self._listener is not None:
                self._notify(Started(job, call.name))
            runner.start(run)
        except BaseException as error:  # resolve() is somebody else's code; the job fails, the pool goes on
            run.answer(Raised(error))

    def _ended(self, run: Run) -> None:
        action = self._decide(run)
        if isinstance(action, Nothing):
            self._settled(run, "lost")
        else:
            self.settler.add(run, action)
        if run.written_off and self.zombies > self._options.zombies and not self._quit.is_set():
            self.fail(f"{self.zombies} handlers did not stop when told to and still run")

    def _decide(self, run: Run) -> Action:
        assert run.how is not None
        try:
            retry = self._options.retry if run.call is None else retry_of(run.call, self._options.retry)
            wall = self._clock.wall()
            action = decide(run.job, run.how, retry, wall, unserved_grace=self._options.unserved_grace)
            report(run, run.how, action)
        except Exception as error:  # else the job would keep its slot for ever
            log.exception("job %r: no action could be found for %s", run.job.id, type(run.how).__name__)
            action = Nack(DEFAULT.delay(run.job.attempt), describe(error) or "")
        run.error = action.error if isinstance(action, Nack | Bury) else None
        return action

    def _settled(self, run: Run, verdict: Verdict) -> None:
        self._running.pop(run, None)
        self.heart.drop(run)
        self._tally[verdict] += 1
        self._freed.set()
        self._changed.set()
        if self._listener is not None:
            seconds = (self._clock.steady() - run.began) / SECOND
            self._notify(Finished(run.job, run.name, verdict, seconds, run.error))

    # -- the rest -----------------------------------------------------------------------------------------

    def _enter(self, phase: Phase, reason: str) -> None:
        self.phase = phase
        log.info("pool %s: %s (%s)", self._options.name, phase, reason)
        self._notify(PoolState(phase, reason))

    def _notify(self, event: Event) -> None:
        if self._listener is not None:
            try:
                self._listener.on(event)
            except Exception:
                self._listener = None
                log.exception("the listener failed and is not called any more")

    def _soon(self, call: Callable[..., object], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:
            pass  # the loop is closed: nothing is left to be told

    def _who_is_busy(self) -> str:
        run = self._loops.busy()
        if run is not None:
            return f"{run.name} (job {run.job.id!r})"
        names = sorted({run.name for run in list(self._running) if run.runner is self._loops})
        return f"something that these handlers began, or none of them: {', '.join(names[:5]) or 'none runs'}"
