"""The jobs that are here: each is begun when there is somebody for it, and leaves when it is settled.

    enlist, take_in ─► (ahead) ─► a runner (loop, thread, process) ─► ended ─► settler ─► settled: somebody is free

Everything here happens on the pool's event loop, but for ``enlist``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

from .. import check
from ..clock import SECOND, Handle, to_micros
from ..job import Job
from ..queue import AsyncQueue
from .ahead import Ahead
from .call import Kind, Resolver
from .context import Context, by_hand
from .crew import Foreman
from .events import Event, Finished, Started, Verdict
from .options import Options
from .outcome import NEVER, RETURNED, Raised, Stop
from .report import conclude
from .run import Run, Runner
from .runners import LoopRunner, ProcessRunner, ThreadRunner
from .settle import Nothing
from .settler import Settler

log = logging.getLogger("headrace.pool")

INSTANT = SECOND // 1000
"""What takes less is no waiting, and needs no second look at the job."""


class Floor:
    """``held``, ``coming``: the runs that are here, whose leases the heartbeat keeps. ``quit`` is set when nothing is
    to be begun any more. ``fail(why)`` stops the pool."""

    def __init__(
        self,
        queue: AsyncQueue,
        resolver: Resolver,
        options: Options,
        held: dict[Run, None],
        coming: list[list[Run]],
        quit: asyncio.Event,
        fail: Callable[[str], None],
    ) -> None:
        self._clock = clock = queue.settings.clock
        self._lease = queue.settings.lease_us
        self._loop = loop = asyncio.get_running_loop()
        self._resolver = resolver
        self._options = options
        self._listener = options.listener
        self._quit = quit
        self._fail = fail
        self.held = held
        self._coming = coming
        self.tally: Counter[str] = Counter()
        self.freed = asyncio.Event()
        """Somebody may be free now, or nothing held any more."""
        self._timeout = 0.0
        """The last one that was found to be a duration."""
        self._beginning = False
        self._overdue: Handle | None = None
        """When to look whether something has waited for too long."""
        self.ahead = Ahead(options.prefetch, self._lease)
        self.settler = Settler(queue, self._settled)
        self._balanced = options.balance is not None
        self.foreman = Foreman(
            queue,
            options.name,
            options.workers,
            options.balance,
            options.schedule,
            self._busy,
            self.resized,
            self.notify,
        )
        self.loops = LoopRunner(loop, clock, self._returned)
        self.runners: dict[Kind, Runner] = {
            "async": self.loops,
            "thread": ThreadRunner(loop, options.name, self.loops),
            "process": ProcessRunner(loop, options.name, clock, options.recycle),
        }

    @property
    def zombies(self) -> int:
        return sum(runner.zombies for runner in self.runners.values())

    @property
    def deserted(self) -> bool:
        """Nobody is there, and nothing runs."""
        return not (self.foreman.roster.active or self.held)

    def _busy(self) -> int:
        """How many workers have a job: until it is settled, so that what is unsent never is more than they are; but
        where jobs are fetched ahead, as many may be unsent as may wait, as long as settling works."""
        unsent = 0 if self.settler.outage.now else min(self.settler.unsent, self.ahead.room)
        return len(self.held) - len(self.ahead.waiting) - unsent

    # -- in -----------------------------------------------------------------------------------------------

    def enlist(self, jobs: list[Job]) -> list[Run]:
        """They were fetched: from now on their leases are kept. From any thread; ``take_in`` follows."""
        clock, ended = self._clock, self._ended
        now = clock.steady()
        lease_end = now + self._lease
        runs = [Run(Context(job, clock), clock, now, lease_end, ended) for job in jobs]
        if runs:
            self._coming.append(runs)
        return runs

    def take_in(self, runs: list[Run]) -> None:
        """Begin those for which there is somebody, and keep or give back the others."""
        self.foreman.fetched(len(runs))
        self.held.update(dict.fromkeys(runs))
        self._coming.remove(runs)
        self.tally["picked up"] += len(runs)
        self.ahead.add(runs)
        self._begin_waiting()
        self._keep_waiting()

    def resized(self) -> None:
        """The roster is not what it was."""
        roster = self.foreman.roster
        for runner in self.runners.values():
            runner.keep(roster.size)
        self.ahead.staff(roster.active)
        self._begin_waiting()
        self._keep_waiting()
        self.freed.set()

    def clear(self) -> None:
        """What waits goes back."""
        if self._overdue is not None:
            self._overdue.cancel()
        self._give_back(self.ahead.clear())

    def _begin_waiting(self) -> None:
        """Those for which there is somebody now; jobs that end in their first step make room for the next."""
        if self._beginning:
            return
        self._beginning = True
        try:
            while self.ahead.waiting and not self._quit.is_set() and (free := self.foreman.free()) > 0:
                self._begin(min(free, len(self.ahead.waiting)))
        finally:
            self._beginning = False

    def _begin(self, count: int) -> None:
        """The first so many of those that wait."""
        now = self._clock.steady()
        resolve, runners, default = self._resolver.resolve, self.runners, self._options.timeout
        take = self.ahead.waiting.popleft
        for _ in range(count):
            run = take()
            if (run.stopped is not None or now - run.began > INSTANT) and self._too_late(run):
                continue
            run.began = now
            try:
                run.call = call = resolve(run.context.job)
                run.runner = runner = runners[call.kind]
                timeout = default if call.timeout is None else call.timeout
                if timeout is not None:
                    run.timeout = self._sound(timeout)
                if self._listener is not None:
                    self.notify(Started(run.job, call.name))
                runner.start(run)
            except BaseException as error:  # resolve() is somebody else's code; the job fails, the pool goes on
                run.answer(Raised(error))

    def _too_late(self, run: Run) -> bool:
        """What happened while it waited: somebody cancelled it, its lease was lost, its deadline has passed."""
        deadline = run.job.deadline
        if deadline is not None and to_micros(deadline) < self._clock.wall():
            run.stop(Stop.DRAIN)  # back to the queue, which knows what becomes of it
        if run.stopped is None:
            return False
        run.answer(Raised(asyncio.CancelledError()))
        return True

    def _sound(self, timeout: float) -> float:
        if timeout != self._timeout:
            check.duration("timeout", timeout, zero=False)
            self._timeout = timeout
        return timeout

    def _keep_waiting(self) -> None:
        """Those that may, for a while. The others go back: they have been tried before, or the pool was made smaller
        while it fetched."""
        ahead = self.ahead
        if ahead.waiting:
            self._give_back(ahead.misplaced())
        if ahead.waiting and self._overdue is None:
            at = ahead.waiting[0].began + ahead.patience
            self._overdue = self._clock.call_at(self._loop, at, self._look_for_overdue)

    def _look_for_overdue(self) -> None:
        self._overdue = None
        self._give_back(self.ahead.overdue(self._clock.steady()))
        self._keep_waiting()

    def _give_back(self, runs: list[Run]) -> None:
        for run in runs:
            run.stop(Stop.DRAIN)
            run.answer(NEVER)

    # -- out ----------------------------------------------------------------------------------------------

    def _returned(self, runs: list[Run]) -> None:
        """Their handlers have returned, as those of most jobs do."""
        self._note_time(runs)
        if by_hand:
            for run in runs:
                if run.context in by_hand:
                    self._conclude(run)
            runs = [run for run in runs if run.context not in by_hand]
        self.settler.acks(runs)
        self._go_on()

    def _ended(self, run: Run) -> None:
        """In any other way, or not in its first step."""
        if run.call is not None:
            self._note_time([run])
        if run.how is RETURNED and run.context not in by_hand:
            self.settler.acks([run])
        else:
            self._conclude(run)
        if run.written_off and self.zombies > self._options.zombies and not self._quit.is_set():
            self._fail(f"{self.zombies} handlers did not stop when told to and still run")
        self._go_on()

    def _conclude(self, run: Run) -> None:
        action = conclude(run, self._options.retry, self._clock.wall(), self._options.unserved_grace)
        if isinstance(action, Nothing):
            self._settled([run], "lost")
        else:
            self.settler.add(run, action)

    def _note_time(self, runs: list[Run]) -> None:
        if self._balanced or self.ahead.most:
            now = self._clock.steady()
            if self._balanced:
                for run in runs:
                    self.foreman.ended((now - run.began) / SECOND)
            self.ahead.ended(len(runs), sum([now - run.began for run in runs]))

    def _go_on(self) -> None:
        """Somebody may be free where jobs are fetched ahead, though nothing is settled yet."""
        if self.ahead.waiting:
            self._begin_waiting()
        if self.ahead.room:
            self.freed.set()

    def _settled(self, runs: list[Run], verdict: Verdict) -> None:
        held = self.held
        for run in runs:
            del held[run]
        if by_hand:
            for run in runs:
                by_hand.pop(run.context, None)
        self.tally[verdict] += len(runs)
        if self.ahead.waiting:
            self._begin_waiting()
        self.freed.set()
        if self._listener is not None:
            now = self._clock.steady()
            for run in runs:
                self.notify(Finished(run.job, run.name, verdict, (now - run.began) / SECOND, run.error))

    def notify(self, event: Event) -> None:
        """Tell the listener, until it fails."""
        if self._listener is not None:
            try:
                self._listener.on(event)
            except Exception:
                self._listener = None
                log.exception("the listener failed and is not called any more")
