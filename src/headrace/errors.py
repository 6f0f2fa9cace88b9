"""What can go wrong, as one tree.

    HeadraceError
    ├── ConfigError      a bad setting or argument          (also a ValueError)
    ├── InvalidJob       a job that cannot be accepted      (also a ValueError)
    ├── QueueFull        no room, and the policy says no    (also a queue.Full)
    ├── QueueClosed      closed: no new jobs; or drained: no more jobs
    ├── DuplicateJob     the id belongs to an unfinished job
    ├── LeaseLost        the lease is over; nothing was changed
    ├── Unsupported      this backend cannot do that, and says so
    └── Unavailable      the store did not answer within its bounded wait: try again later
        └── StorageFull  the disk is full, or the file may not grow

Every message says what was wrong, where, and what to do.
"""

from __future__ import annotations

import queue
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .job import Job


class HeadraceError(Exception):
    """The root: ``except HeadraceError`` catches everything Headrace raises on purpose."""


class ConfigError(HeadraceError, ValueError):
    """A setting or an argument is out of range. The message names it, its value and the allowed range."""


class InvalidJob(HeadraceError, ValueError):
    """The job cannot be accepted; nothing was stored. The message names the job and the reason."""

    def __init__(self, job_id: object, reason: str) -> None:
        super().__init__(f"job {job_id!r}: {reason}")
        self.job_id = job_id
        self.reason = reason

    def __reduce__(self) -> tuple[type[InvalidJob], tuple[object, str]]:
        return type(self), (self.job_id, self.reason)


class QueueFull(HeadraceError, queue.Full):
    """``ready + delayed + inflight`` has reached the capacity, and the overflow policy refuses newcomers."""


class QueueClosed(HeadraceError):
    """The queue was closed: it takes no new jobs, and what was due has been handed out."""


class DuplicateJob(HeadraceError):
    """The id belongs to a job that is not finished yet; nothing was stored."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"job {job_id!r}: an unfinished job holds this id; it is free again after ack or death")
        self.job_id = job_id

    def __reduce__(self) -> tuple[type[DuplicateJob], tuple[str]]:
        return type(self), (self.job_id,)


class LeaseLost(HeadraceError):
    """The lease ran out, was settled already, or never was: nothing was changed, and nothing may be.

    ``jobs`` holds those whose lease was lost; in a batch the others were settled.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        named = ", ".join(f"{job.id!r} (attempt {job.attempt}, fence {job.fence})" for job in jobs[:3])
        more = f" and {len(jobs) - 3} more" if len(jobs) > 3 else ""
        super().__init__(f"lease lost: job {named}{more}; stop the work, its result no longer counts")
        self.jobs = tuple(jobs)

    def __reduce__(self) -> tuple[type[LeaseLost], tuple[tuple[Job, ...]]]:
        return type(self), (self.jobs,)


class Unsupported(HeadraceError):
    """This backend cannot do what was asked; ``queue.capabilities`` tells beforehand."""


class Unavailable(HeadraceError):
    """The store could not be reached, read or written within the bounded wait. Trying again may work."""


class StorageFull(Unavailable):
    """There is no room to write. What was accepted before is safe; this call left nothing behind."""
