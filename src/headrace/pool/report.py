"""What a failed attempt leaves in the log: bounded, whatever the exception, and never the payload."""

from __future__ import annotations

import logging
import traceback

from ..text import describe
from .outcome import Ended, Raised
from .run import Run
from .settle import Action, Bury, Nack

log = logging.getLogger("headrace.pool")

_FRAMES = 12
_LONGEST = 1000


def report(run: Run, how: Ended, action: Action) -> None:
    """Say that an attempt failed and what follows. The frames say where; a formatted exception could be of any
    size, for it shows every cause and every message in full."""
    match action:
        case Nack(delay, error):
            job = run.job
            last = job.max_attempts is not None and job.attempt >= job.max_attempts
            what = f"attempt {job.attempt} of {job.max_attempts} failed"
            follows = "no attempts are left" if last else f"again in {delay:.3g} s"
        case Bury(error):
            what, follows = "discarded", "it is dead"
        case _:
            return
    frames = ""
    if isinstance(how, Raised) and isinstance(how.error, BaseException):
        frames = "\n" + "".join(traceback.format_tb(how.error.__traceback__, -_FRAMES)).rstrip()
    shown = (describe(error) or "")[:_LONGEST]
    log.warning("job %r (%s): %s, %s: %s%s", run.job.id, run.name, what, follows, shown, frames)
