"""Keeps the leases of what runs: on a thread and a connection of its own.

A handler that blocks the event loop, or an ack that hangs, must not cost its neighbours their leases. So
nothing here waits for the loop: the sync face of the queue extends all leases in one call, and the loop is only
told what happened.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from .. import check
from ..clock import SECOND, Clock
from ..errors import ConfigError
from ..queue import Queue
from .context import by_hand
from .health import Pulse
from .outcome import Stop
from .run import Run, lease_of
from .waiting import Outage


def interval_for(lease: float, asked: float | None) -> float:
    """Seconds between two beats: a third of the lease, so that one may be missed. A longer interval than half
    the lease could lose it by a single missed beat, and is refused."""
    if asked is None:
        return lease / 3
    check.duration("heartbeat", asked, zero=False)
    if asked > lease / 2:
        raise ConfigError(f"heartbeat: {asked!r} is more than half the lease of {lease:g} s; a third is usual")
    return asked


class Heartbeat:
    """Beats for every run that is held. ``tell(run, stop)`` is called on its thread, or on that of ``expire``."""

    def __init__(
        self,
        queue: Queue,
        interval: float,
        tell: Callable[[Run, Stop], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._queue = queue
        self._clock: Clock = queue.settings.clock
        self._lease = queue.settings.lease
        self._interval = round(interval * SECOND)
        self._tell = tell
        self._failed = failed
        self.held: dict[Run, None] = {}
        """Whose leases it keeps. Written on the event loop's thread only."""
        self.coming: list[list[Run]] = []
        """The same, for those that a thread has fetched and the event loop does not know yet."""
        self._stopped = False
        self._bell = threading.Lock()
        self._bell.acquire()
        self._thread = threading.Thread(target=self._work, name="headrace-heartbeat", daemon=True)
        self.pulse = Pulse(self._clock)
        self.outage = Outage("extending leases")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Beat no more. Waits for a beat under way, but no longer than a second: it may hang in the store."""
        self._stopped = True
        try:
            self._bell.release()
        except RuntimeError:
            pass  # the clock has rung it in this very moment
        self._thread.join(1.0)

    def expire(self) -> None:
        """Tell those whose lease must be over by now, whatever the store would say if it answered."""
        now = self._clock.steady()
        for run in self._kept():
            if run.lease_end <= now and run.context not in by_hand:
                self._tell(run, Stop.LEASE)

    def _work(self) -> None:
        next_beat = self._clock.steady() + self._interval
        while not self._clock.acquire(self._bell, next_beat) and not self._stopped:
            now = self._clock.steady()
            next_beat = now + self._interval
            self.pulse.begin()
            try:
                self._beat(now)
            except Exception as error:
                self.pulse.end(done=False)
                if self._stopped:
                    return
                next_beat = min(next_beat, self._after_failure(error))
            else:
                self.pulse.end()
                self.outage.over()

    def _kept(self) -> list[Run]:
        coming = [run for batch in list(self.coming) for run in batch]
        return list(dict.fromkeys([*coming, *list(self.held)]))

    def _beat(self, now: int) -> None:
        runs = [run for run in self._kept() if not run.settling]
        if not runs:
            return
        kept = {lease_of(job): job for job in self._queue.extend_many([run.job for run in runs], self._lease)}
        for run in runs:
            job = kept.get(lease_of(run.job))
            if job is not None:
                # From before the call: a lease may begin to count as soon as it was asked for.
                run.lease_end = now + round(self._lease * SECOND)
                run.context.job = job
                if job.cancelled:
                    self._tell(run, Stop.ASKED)
            elif not run.settling and run.context not in by_hand:  # else it was settled while we asked
                self._tell(run, Stop.LEASE)

    def _after_failure(self, error: Exception) -> int:
        """The next try: soon, and no later than the first lease ends."""
        seconds = self.outage.failed(error)
        self.expire()
        if self.outage.hopeless:
            self._failed(error)
        now = self._clock.steady()
        ends = [run.lease_end for run in self._kept() if run.lease_end > now]
        return min([now + round(seconds * SECOND), *ends])
