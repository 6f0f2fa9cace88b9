"""Jobs that were fetched ahead: leased here, begun by nobody yet.

A store that has to be reached, over a disk or a network, answers for hundreds of jobs in little more time than for
one. Where jobs are short, fetching no more than there are free workers would have all of them wait for the store
most of the time. So a pool fetches what its workers will begin within a moment, judged by what the last jobs took.

What that costs, and what bounds it: a crash takes an attempt from jobs that nobody began, so only a job's first
attempt, and never its last, waits here: a job that kills its worker takes its neighbours along once at most. And a
job that waits here is out of reach of other workers, so it goes back when the moment turns out to be a long one.
"""

from __future__ import annotations

from collections import deque

from ..clock import SECOND
from ..job import Job
from .run import Run

MOMENT = SECOND // 10
"""So much work may wait."""
PATIENCE = SECOND
"""What has waited for so long goes back."""
MOST = 1000
"""Jobs that may wait where nobody gives a number."""
_MEMORY = 64
"""About so many jobs make up the mean of what one takes."""


class Ahead:
    """Those that wait, the first in line first, and how many there may be. ``most``: at most so many; 0: none."""

    def __init__(self, most: int, lease: int) -> None:
        self.most = most
        self.waiting: deque[Run] = deque()
        self._workers = 0
        self.room = 0
        """How many may wait, as things stand."""
        self.patience = min(PATIENCE, lease // 10)
        self._moment = min(MOMENT, lease // 10)
        self._takes = 0.0
        """Microseconds for which a job keeps a worker; 0.0: not known yet."""
        self._wary = False
        """The last fetch brought a job that may not wait: until one brings none, jobs come one for each worker."""

    def staff(self, workers: int) -> None:
        """So many workers are there from now on."""
        self._workers = workers
        self._measure()

    def ended(self, count: int, micros: int) -> None:
        """So many jobs have kept a worker for so long, all together."""
        if self.most:
            mean = max(micros / count, 1.0)
            self._takes += (mean - self._takes) * (count / (count + _MEMORY) if self._takes else 1.0)
            self._measure()

    def add(self, runs: list[Run]) -> None:
        """They were fetched, and stand in line from now on."""
        if self.most:
            self._wary = not all(_may_wait(run.job) for run in runs)
            self._measure()
        self.waiting.extend(runs)

    def misplaced(self) -> list[Run]:
        """Takes out those that find nobody to begin them and may not wait. Where nobody is there, none may."""
        waiting = list(self.waiting)
        stay = [run for run in waiting if _may_wait(run.job)] if self.most and self._workers else []
        if len(stay) == len(waiting):
            return []
        self.waiting = deque(stay)
        staying = set(stay)
        return [run for run in waiting if run not in staying]

    def overdue(self, now: int) -> list[Run]:
        """Takes out those that have waited for too long. Whatever the workers do takes longer than it did."""
        found = []
        while self.waiting and self.waiting[0].began + self.patience <= now:
            found.append(self.waiting.popleft())
        if found:
            self._takes = max(self._takes, float(self.patience))
            self._measure()
        return found

    def clear(self) -> list[Run]:
        """Takes out all."""
        found = list(self.waiting)
        self.waiting.clear()
        return found

    def _measure(self) -> None:
        takes = self._takes
        self.room = 0 if self._wary or not takes else min(int(self._workers * self._moment / takes), self.most)


def _may_wait(job: Job) -> bool:
    return job.attempt == 1 and job.max_attempts != 1
