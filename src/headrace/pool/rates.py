"""How fast jobs come, how long they take, and how many of them are ours, from totals that only rise.

Exponentially weighted, because yesterday's load says nothing about the next minute. Each estimate is divided by
the weight it has gathered so far, so that one which has seen a second is unbiased, if noisy, instead of near zero.
"""

from __future__ import annotations

import math

from .. import check
from ..clock import SECOND

ARRIVALS = 20.0
"""Seconds after which an arrival counts for 1/e. Half of that follows a ramp no better, and a burst is answered by its
backlog long before; but it follows chance as well, and moves workers four times as often."""
SERVICE = 120.0
"""The same for a finished job. Service times differ more from job to job than from minute to minute."""
SHARING = 60.0
"""The same for who did it. Pools come and go more seldom than load does, and what has gone wrong is seen at once."""
DOUBT = 10.0
"""So many jobs of our own are taken for granted, or a pool that does few would know too well who does the rest."""


class Rates:
    """Feed it now and then, at any intervals; read it at any time. Not locked: one owner."""

    def __init__(self, *, arrivals: float = ARRIVALS, service: float = SERVICE) -> None:
        self._arrivals = check.duration("arrivals", arrivals, zero=False)
        self._service = check.duration("service", service, zero=False)
        self._last: tuple[int, int, int, float, int] | None = None
        self._rate = 0.0
        self._weight = 0.0
        self._jobs = 0.0
        self._seconds = 0.0
        self._ours = 0.0
        self._all = 0.0

    def feed(self, now: int, arrived: int, settled: int, seconds: float, everyone: int | None = None) -> None:
        """``now`` in steady microseconds, and totals: jobs that came, jobs that we settled, the seconds for which
        those ran, and jobs that ``everyone`` on the queue settled (None: there is nobody else). The first call only
        says where they start, and so does one in which any of them went back: the store was restarted, and what
        lies between is unknown."""
        before, self._last = self._last, (now, arrived, settled, seconds, settled if everyone is None else everyone)
        if before is None:
            return
        elapsed, came, done, ran, all_done = (new - old for new, old in zip(self._last, before, strict=True))
        if min(elapsed, came, done, ran, all_done) < 0:
            return
        if elapsed == 0:
            self._last = before  # no time, no rate: what came counts in the next interval
            return
        kept = math.exp(-elapsed / self._arrivals)
        self._rate = self._rate * kept + came * SECOND / elapsed * (1 - kept)
        self._weight = self._weight * kept + (1 - kept)
        kept = math.exp(-elapsed / (SHARING * SECOND))
        self._ours = self._ours * kept + done
        self._all = self._all * kept + all_done
        if done:  # else nothing was learnt, and nothing is forgotten
            kept = math.exp(-elapsed / self._service)
            self._jobs = self._jobs * kept + done
            self._seconds = self._seconds * kept + ran

    @property
    def arrival_rate(self) -> float:
        """Jobs a second; 0.0 before two readings."""
        return self._rate / self._weight if self._weight else 0.0

    @property
    def service_time(self) -> float:
        """Seconds a job, each weighted alike; 0.0 while none was settled."""
        return self._seconds / self._jobs if self._jobs else 0.0

    @property
    def share(self) -> float:
        """How much of what is done is ours, 0.0 to 1.0. While little is known, nearly all: who provides for too much
        holds the goal, and who relies on others that may not be there does not."""
        return min(1.0, (self._ours + DOUBT) / (self._all + DOUBT))
