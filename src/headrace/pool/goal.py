"""How many workers keep the oldest waiting job younger than a goal: arithmetic on measured rates.

Three answers; the largest counts.

**Little's law.** Jobs that come at a rate λ and take W seconds each keep λ·W workers busy on average. With no more
than these a queue grows without end, since whatever a lull leaves undone is never caught up on; so they are to be
busy for 70 % of the time: λ·W / 0.7 workers.

**The backlog.** A job that comes now is behind B others, so with c workers it waits B·W / c. Half of the goal is left
to that and half to the delay of measuring: c = B·W / (goal / 2), at most one for each job that is there.

**What is.** Rates are estimates, and wrong just when the load changes. Where the oldest job has waited for half of
the goal all the same, half as many again as are up; again at the next look, if that was not enough.

To go up and down at the same figure would mean to do so for ever, for a measured rate never stands still. So some are
too many only where they would be busy for less than 60 % of the time.

Little, "A Proof for the Queuing Formula: L = λW", Operations Research 9 (3), 1961.
"""

from __future__ import annotations

import math

import msgspec

BUSY = 0.7
"""The share of their time for which the workers are to be busy."""
LAZY = 0.6
"""Workers that would be busy for less than this are too many."""
_NOBODY = 0.01
"""A hundredth of a worker is none. A rate that fades away never quite reaches 0, and 7 / 0.7 is not quite 10."""


class Need(msgspec.Struct, frozen=True):
    """From ``least`` to ``most`` workers nothing has to change."""

    least: int
    most: int
    reason: str


def workers(rate: float, seconds: float, busy: float = BUSY) -> int:
    """By Little's law: for ``rate`` jobs a second of ``seconds`` each, if ``busy`` (0..1) of the time is used."""
    return math.ceil(rate * seconds / busy - _NOBODY)


def need(
    target: float,
    *,
    rate: float,
    seconds: float,
    ready: int,
    oldest: float,
    active: int,
    busy: int,
) -> Need:
    """``target``, ``seconds`` (a job) and ``oldest`` in seconds, ``rate`` in jobs a second. What is not known yet
    is 0.0, and then only what has already gone wrong counts."""
    least, most = workers(rate, seconds), workers(rate, seconds, LAZY)
    reason = f"{rate:.3g} jobs/s of {seconds:.3g} s"
    useful = busy + ready
    backlog = min(useful, workers(ready, seconds, target / 2))
    if backlog > least:
        least, reason = backlog, f"{ready} ready jobs of {seconds:.3g} s, to begin within {target:g} s"
    if oldest >= target / 2 and ready > active - busy:
        late = min(useful, active + max(1, active // 2))
        if late > least:
            least, reason = late, f"the oldest job has waited {oldest:.3g} s of {target:g} s"
    return Need(least, max(least, most), reason)
