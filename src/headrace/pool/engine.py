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
from .balance import Balance
from .call import Kind, Resolver
from .crew import Foreman
from .events import Event, Finished, Phase, PoolState, Started, Verdict
from .health import PoolFailed, Pulse, Summary
from .heartbeat import Heartbeat
from .options import Options
from .outcome import NEVER, RETURNED, Raised, Stop
from .report import conclude
from .run import Run, Runner, after
from .runners import LoopRunner, ProcessRunner, ThreadRunner
from .settle import ACK, Action, Nothing
from .settler import Settler
from .waiting import Outage, rounds, sleep, wait
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
        self._lease = queue.settings.lease_us
        self._resolver = resolver
        self._options = options
        self._loop = loop = asyncio.get_running_loop()
        self._freed = asyncio.Event()
        self._wants_slot = False
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
        self._running = self.heart.held
        self._balanced = options.balance is not None
        self.foreman = Foreman(
            queue,
            options.name,
            options.workers,
            options.balance,
            options.schedule,
            self._running.__len__,
            self._resized,
            self._notify,
        )
        self._loops = LoopRunner(loop, self._clock)
        self._runners: dict[Kind, Runner] = {
            "async": self._loops,
            "thread": ThreadRunner(loop, options.name, self._loops),
            "process": ProcessRunner(loop, options.name, self._clock, options.recycle),
        }
        self.watch = LoopWatch(loop, self._who_is_busy)

    # -- the whole way ------------------------------------------------------------------------------------

    async def work(self) -> None:
        """Until stopped, or the queue is closed and drained."""
        self.heart.pulse.end()  # alive from now on
        self.heart.start()
        self.watch.start()
        self._enter("running", "started")
        self._resized()
        self._fetch_on()
        self._keep(self.settle_outage, self.settler.round)
        self._keep(Outage("minding the pool"), self._mind)
        if self._balanced:
            self._keep(Outage("balancing the pool"), self.foreman.round)
        await self._quit.wait()

    async def wind_up(self) -> None:
        """In two beats: take no more and let what runs finish in time; then cancel the rest and give it back."""
        self._enter("draining", self.reason)
        if self._fetcher is not None:
            if not self.settler.lent:  # else it ends when it has written down what it has in its hands
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
        tasks = [*self._tasks, *([] if self._fetcher is None else [self._fetcher])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=LAST_WORD)
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

    def resize(self, workers: int | None, balance: Balance | None) -> None:
        """To so many workers, or between other limits."""
        if workers is not None:
            self.foreman.pin(workers)
        elif balance is not None:
            self.foreman.rebalance(balance)

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

    def _keep(self, outage: Outage, work: Callable[[], Awaitable[bool | None]]) -> None:
        self._tasks.append(self._loop.create_task(rounds(outage, work, self._clock, self.fail)))

    def _fetch_on(self) -> None:
        """Fetch in a new task: the last one belongs to a handler now."""
        self._fetcher = self._loop.create_task(rounds(self.fetch_outage, self._fetch, self._clock, self.fail))

    async def _fetch(self) -> bool:
        if self._quit.is_set():
            return True
        while (free := self.foreman.free()) <= 0:
            await self._until_freed()
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
        self.foreman.closed = closed
        if jobs:
            return await self._run_all(jobs)
        if closed and self._running:
            await self._until_freed()  # what runs may yet be given back, and would then be due
        elif closed:
            self.reason = self.reason or "the queue is closed and drained"
            self._quit.set()
            return True
        return False

    async def _run_all(self, jobs: list[Job]) -> bool:
        """This task takes the first steps of the async handlers itself, and writes down what has ended by then: jobs
        that need no waiting need no other task either. The first handler that waits keeps the task (True), and
        fetching goes on in another."""
        free = 0 if self._quit.is_set() else self.foreman.fetched(len(jobs))
        self._loops.lead()
        self.settler.expected = True
        try:
            self._begin_all(jobs, free)
        finally:
            rest = self._loops.first_steps()
            self.settler.expected = False
        if rest is None:
            if self.settle_outage.now:
                self.settler.wake()  # it tries again in its own time
            else:
                await self.settler.write_here()
            await asyncio.sleep(0)  # the others' turn
            return False
        self.settler.wake()
        self._fetch_on()
        await rest
        return True

    async def _until_freed(self) -> None:
        self._freed.clear()
        self._wants_slot = True
        try:
            await self._freed.wait()
        finally:
            self._wants_slot = False

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

    def _begin_all(self, jobs: list[Job], free: int) -> None:
        """Those for which there is nobody any more, as the pool was made smaller meanwhile, go back."""
        now = self._clock.steady()
        lease_end = now + self._lease
        self._tally["picked up"] += len(jobs)
        for job in jobs:
            run = Run(job, self._clock, now, lease_end, self._ended)
            self._running[run] = None
            if free > 0:
                free -= 1
                self._begin(run, job)
            else:
                run.stop(Stop.DRAIN)
                run.answer(NEVER)

    def _begin(self, run: Run, job: Job) -> None:
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
        if self._balanced and run.call is not None:
            self.foreman.ended((self._clock.steady() - run.began) / SECOND)
        action: Action = ACK  # what most of them come to
        if run.how is not RETURNED:
            action = conclude(run, self._options.retry, self._clock.wall(), self._options.unserved_grace)
        if isinstance(action, Nothing):
            self._settled(run, "lost")
        else:
            self.settler.add(run, action)
        if run.written_off and self.zombies > self._options.zombies and not self._quit.is_set():
            self.fail(f"{self.zombies} handlers did not stop when told to and still run")

    def _settled(self, run: Run, verdict: Verdict) -> None:
        self._running.pop(run, None)
        self._tally[verdict] += 1
        if self._wants_slot:
            self._freed.set()
        if self._stopping:
            self._changed.set()
        if self._listener is not None:
            seconds = (self._clock.steady() - run.began) / SECOND
            self._notify(Finished(run.job, run.name, verdict, seconds, run.error))

    def _resized(self) -> None:
        for runner in self._runners.values():
            runner.keep(self.foreman.roster.size)
        self._freed.set()

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
