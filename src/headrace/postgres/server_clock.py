"""Has somebody moved the server's clock? It is the only truth about time, and the only one it has is the wall clock.

A server tells nobody how long it has been running by a clock that never steps. But a process on the same machine knows
such a clock: when the server's time jumps against it, and the machine's own wall clock jumps by the same, the wall
clock of that machine was moved, and time has not. A process on another machine cannot tell that from having been
stopped for a while itself, so it says nothing, and takes the server's word.
"""

from __future__ import annotations

from ..timeline import TOLERANCE


class ServerClock:
    """Microseconds throughout. Takes every answer of the server that holds its time."""

    def __init__(self) -> None:
        self.anchor = 0
        """The server's queue time less the steady clock here."""
        self._wall = 0
        self._began = False

    def seen(self, now: int, steady: int, wall: int) -> int:
        """The server said ``now``, at ``steady`` and ``wall`` here. By how much its clock was moved since the last
        time, as far as can be told: 0, or what the calendar and queue time have come apart by."""
        anchor, own = now - steady, wall - steady
        jump, mine = anchor - self.anchor, own - self._wall
        moved = self._began and abs(jump) > TOLERANCE and abs(jump - mine) <= TOLERANCE
        self.anchor, self._wall, self._began = anchor, own, True
        return jump if moved else 0


def is_here(host: str) -> bool:
    """Is a server that is reached like this on this machine?"""
    return host.startswith(("/", "@")) or host in ("", "localhost", "127.0.0.1", "::1")
