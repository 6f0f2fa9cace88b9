"""Who works: how many workers are active or asleep at this moment, and the loop that changes it.

A worker is a slot: the right to run one job. The active ones together are what the pool fetches for. One that is
sent to sleep while it runs a job finishes that first, so nothing here ever interrupts anybody.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ..clock import FAR, SECOND, Clock, to_datetime, to_micros
from ..queue import AsyncQueue
from .balance import Balance, Crew, Limits, Load, Move, calibrate
from .events import Balanced
from .rates import Rates
from .schedule import Schedule, Slot
from .waiting import wait

log = logging.getLogger("headrace.pool")

LOOK = 30 * SECOND
"""Between two looks at the calendar, at most: it may be moved while nobody expects it."""


class Roster:
    """The slots of a pool."""

    def __init__(self, active: int) -> None:
        self.active = active
        self.asleep: list[int] = []
        """Since when each sleeps, in steady microseconds; the longest asleep first."""

    @property
    def size(self) -> int:
        return self.active + len(self.asleep)

    def seen(self, busy: int) -> Crew:
        return Crew(active=self.active, asleep=tuple(self.asleep), busy=busy)

    def do(self, move: Move, now: int) -> None:
        for _ in range(move.wake):
            self.asleep.pop()
        self.asleep += [now] * move.sleep
        del self.asleep[: move.stop]
        self.active += move.wake + move.start - move.sleep

    def set(self, active: int) -> None:
        self.active = active
        self.asleep.clear()


class Foreman:
    """Keeps the roster as the balance and the schedule want it. On the event loop, all of it.

    ``running()`` counts the jobs that are held now; ``changed()`` is called when the roster is not what it was.
    """

    def __init__(
        self,
        queue: AsyncQueue,
        name: str,
        workers: int,
        balance: Balance | None,
        schedule: Schedule | None,
        running: Callable[[], int],
        changed: Callable[[], None],
        notify: Callable[[Balanced], None],
    ) -> None:
        self._queue = queue
        self._clock: Clock = queue.settings.clock
        self._name = name
        self._balance = balance
        self._schedule = schedule
        self._running = running
        self._changed = changed
        self._notify = notify
        self._slot: Slot | None = None
        self._rates = Rates()
        self._jobs = 0
        self._seconds = 0.0
        self._bell = asyncio.Event()
        self._next = 0
        self._fetched = 0
        self._idle = True
        """Somebody had nothing to do at the last heartbeat, and a burst has not been seen since."""
        self._forced = False
        self.calibrations = 0
        self._pinned = balance is None
        self._throttled = False
        self.closed = False
        """The queue takes no more jobs, and none is due."""
        self.roster = Roster(workers if balance is None else self._limits(balance).min)

    # -- what the engine asks and tells -------------------------------------------------------------------

    def free(self) -> int:
        """For how many jobs there is somebody. A balanced pool that has nobody left still looks for one job: that
        one wakes a worker, and the end of a closed queue is seen."""
        free = self.roster.active - self._running()
        return 1 if not free and not self.roster.active and not self._pinned else free

    def fetched(self, count: int) -> None:
        """So many jobs came; those that came ahead of time are no burst."""
        if self._pinned:
            return
        roster = self.roster
        if not roster.active and not self._running():
            self._apply(Move(wake=1, reason="a job came") if roster.asleep else Move(start=1, reason="a job came"))
        free = max(0, roster.active - self._running())
        self._fetched += min(count, free)
        assert self._balance is not None
        burst = self._fetched >= self._balance.force_calibration_limit
        if burst or (count >= free and self._idle):
            # More came than was expected: that will not wait for the heartbeat. But the second reason holds only
            # once between two heartbeats, or a worker that is alone would have the queue counted for every job.
            self._fetched = 0
            self._idle = False
            self._forced = True
            self._hurry()

    def ended(self, seconds: float) -> None:
        """A job has run for so long."""
        self._jobs += 1
        self._seconds += seconds

    def pin(self, workers: int) -> None:
        """So many from now on, whatever the load."""
        self._pinned = True
        self.roster.set(workers)
        log.info("pool %s: resized to %d workers", self._name, workers)
        self._changed()

    def rebalance(self, balance: Balance) -> None:
        """Between other limits from now on."""
        self._balance = balance
        self._pinned = False
        log.info("pool %s: resized to between %d and %d workers", self._name, balance.min, balance.max)
        self._hurry()

    # -- the loop -----------------------------------------------------------------------------------------

    async def round(self) -> None:
        """Wait until it is time, and calibrate once."""
        now = self._clock.steady()
        if self._pinned or now < self._next:
            await wait(self._bell, self._clock, FAR if self._pinned else self._next)
            return
        assert self._balance is not None
        self._next = self._wake_at(self._balance, now)  # before the wait: a burst during it counts
        forced, self._forced = self._forced, False
        stats = await self._queue.stats()
        now = self._clock.steady()
        # What comes to the line of ready jobs: a retry is work as a new job is. Of what ends, only what every pool
        # counts: jobs also die in the queue, and a pool that is alone must not take that for somebody else's work.
        arrived = stats.enqueued + stats.retried + stats.expired_leases
        self._rates.feed(now, arrived, self._jobs, self._seconds, stats.acked + stats.retried)
        load = Load(
            size=stats.size,
            capacity=stats.capacity,
            ready=0 if stats.paused else stats.ready,
            oldest_ready=0.0 if stats.paused else stats.oldest_ready,
            arrival_rate=self._rates.arrival_rate,
            service_time=self._rates.service_time,
            share=self._rates.share,
            closed=self.closed,
        )
        crew = self.roster.seen(self._running())
        self.calibrations += 1
        self._fetched = 0
        if not forced:
            self._idle = crew.idle > 0 or not crew.active
        if not self._pinned:  # it may have been, while we asked
            self._apply(calibrate(self._balance, self._limits(self._balance), crew, load, now), crew, load)

    def _hurry(self) -> None:
        self._next = 0
        self._bell.set()

    def _apply(self, move: Move, crew: Crew | None = None, load: Load | None = None) -> None:
        if not (move.any or move.throttled != self._throttled):
            return
        self._throttled = move.throttled
        crew = crew or self.roster.seen(self._running())
        self.roster.do(move, self._clock.steady())
        log.debug("pool %s: %s: %s, from %s", self._name, move.reason, move, crew)
        self._notify(Balanced(move, crew, load))
        if move.any:
            self._changed()

    def _limits(self, balance: Balance) -> Limits:
        """Those of the hour."""
        if self._schedule is None:
            return balance.limits
        now = to_datetime(self._clock.wall())
        limits, slot = self._schedule.limits(balance, now), self._schedule.get(now)
        if slot != self._slot:
            where = "outside the schedule's ranges" if slot is None else slot.range
            log.info("pool %s: %s: %d to %d workers", self._name, where, limits.min, limits.max)
            self._slot = slot
        return limits

    def _wake_at(self, balance: Balance, now: int) -> int:
        """When to calibrate next: at the heartbeat, or when the schedule changes."""
        until = now + round(balance.heartbeat * SECOND)
        if self._schedule is None:
            return until
        wall = self._clock.wall()
        change = self._schedule.next_change(to_datetime(wall))
        at = FAR if change is None else now + max(1, to_micros(change) - wall)
        return min(until, at, now + LOOK)
