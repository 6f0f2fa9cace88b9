"""A job from all its fields, in order; the compiled core has a copy of its own that writes them where they belong."""

from __future__ import annotations

from collections.abc import Callable

from .job import Job

lay: Callable[..., Job] = Job
"""Moments are microseconds since 1970 here, see ``job.py``."""


def moment(micros: int) -> int:
    """A moment as it is left in a job."""
    return micros
