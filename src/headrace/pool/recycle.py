"""When a worker process has served for long enough: what leaks in a child goes with it."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from .. import check
from ..errors import ConfigError


class Recycle(msgspec.Struct, frozen=True):
    """Limits for one child, looked at between two jobs; None: no limit."""

    jobs: int | None = None
    memory: int | None = None
    """Resident bytes."""

    @classmethod
    def make(cls, jobs: int | None, memory: int | None) -> Recycle:
        """Checked; ConfigError names the setting, the value and the range."""
        if jobs is not None:
            check.whole("recycle_jobs", jobs, 1, 1_000_000_000)
        if memory is not None:
            check.whole("recycle_memory", memory, 1, 1 << 50)
            if resident(os.getpid()) is None:
                raise ConfigError(f"recycle_memory: {memory!r}: this system does not tell how much a process uses")
        return cls(jobs, memory)

    def due(self, jobs: int, pid: int | None) -> bool:
        """Whether a child that has done so many jobs should be replaced."""
        if self.jobs is not None and jobs >= self.jobs:
            return True
        return self.memory is not None and pid is not None and (resident(pid) or 0) >= self.memory


def resident(pid: int) -> int | None:
    """Bytes of memory that a process has; None where that cannot be known, or it is gone."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
