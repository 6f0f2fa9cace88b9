"""How many workers keep the oldest waiting job younger than a goal: arithmetic on measured rates.

Three answers; the largest counts.

**Little's law.** Jobs that come at a rate λ and take W seconds each keep λ·W workers busy on average. With no more
than these a queue grows without end, since whatever a lull leaves undone is never caught up on; so they are to be
busy for 70 % of the time: λ·W / 0.7 workers.

**The backlog.** A job that comes now is behind B others, so with c workers it waits B·W / c. Half of the goal is left
to that and half to the delay of measuring: c = B·W / (goal / 2), at most one for each job that is there.

**What is.** Rates are estimates, and wrong just when the load changes. Where the oldest job has waited for half of
the goal all the same, half as many again as are up; again at the next look, if that was not enough.

Where several pools serve one queue, each provides for its share of what comes and of what waits: the share of the
jobs that it did lately. So together they come to what one would be, and how they divide it is left to chance. But a
share is a promise of others, and they may be gone. So it counts only while the goal is held: once the oldest job has
waited for half of the goal, what is left to others shrinks with the time that is left, and at the goal each provides
for everything.

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
    share: float = 1.0,
) -> Need:
    """``target``, ``seconds`` (a job) and ``oldest`` in seconds, ``rate`` in jobs a second, ``share`` of them is ours
    (0.0 to 1.0). What is not known yet is 0.0, and then only what has already gone wrong counts."""
    late = oldest >= target / 2 and ready > active - busy
    if late:
        share += (1 - share) * min(1.0, 2 * oldest / target - 1)
    of = "" if share > 0.99 else f"{share:.0%} of "
    least, most = workers(rate * share, seconds), workers(rate * share, seconds, LAZY)
    reason = f"{of}{rate:.3g} jobs/s of {seconds:.3g} s"
    useful = busy + ready
    backlog = min(useful, workers(ready * share, seconds, target / 2))
    if backlog > least:
        least, reason = backlog, f"{of}{ready} ready jobs of {seconds:.3g} s, to begin within {target:g} s"
    if late:
        more = min(useful, active + max(1, active // 2))
        if more > least:
            least, reason = more, f"the oldest job has waited {oldest:.3g} s of {target:g} s"
    return Need(least, max(least, most), reason)
