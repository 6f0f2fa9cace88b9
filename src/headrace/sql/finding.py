"""What a look at a store may find wrong with it, and what the figures of any queue tell."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ..job import Stats


class Finding(msgspec.Struct, frozen=True):
    """One thing that does harm, or will."""

    check: str
    serious: bool
    """Wake somebody; else it can wait for the morning."""
    what: str
    cure: str
    """A command where there is one."""


EXPIRED_SHARE = 0.01
"""More lost leases than that, of all attempts that ended, are no accidents."""
ENOUGH = 100
"""Attempts before a share means anything."""


def of_queue(name: str, stats: Stats) -> Iterator[Finding]:
    """What its figures tell, wherever it is."""
    if stats.unaccounted:
        yield Finding(
            "unaccounted",
            True,
            f"queue {name}: {stats.unaccounted:+,} jobs unaccounted for: a defect, or somebody wrote to the tables",
            "keep a backup and report it; the figures are in: headrace stats --json",
        )
    ended = stats.acked + stats.retried + stats.dead_total + stats.expired_leases
    if ended >= ENOUGH and stats.expired_leases > ended * EXPIRED_SHARE:
        late = f", {stats.ack_too_late:,} settled too late: they ran on" if stats.ack_too_late else ""
        yield Finding(
            "leases",
            bool(stats.ack_too_late),
            f"queue {name}: {stats.expired_leases:,} of {ended:,} attempts outlived their lease{late}",
            "a longer lease= (twice the 99.9th percentile of the run time), or workers that do not die or stall",
        )
    elif stats.ack_too_late:
        yield Finding(
            "ack_too_late",
            False,
            f"queue {name}: {stats.ack_too_late:,} jobs were settled after their lease was over, so they ran twice",
            "if it rises: a longer lease=, and look for what stalls a worker",
        )
    if stats.dead_dropped:
        yield Finding(
            "dead_dropped",
            True,
            f"queue {name}: {stats.dead_dropped:,} dead letters found no room and are lost",
            f"headrace dead list --queue {name}, then replay or purge; or a larger dead_capacity=",
        )
    if stats.paused and stats.ready:
        yield Finding(
            "paused",
            False,
            f"queue {name}: paused, and {stats.ready:,} jobs wait",
            f"headrace resume --queue {name}",
        )
