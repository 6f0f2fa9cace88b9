"""What follows from an attempt, and what a failed one leaves in the log: bounded, whatever the exception, and never
the payload."""

from __future__ import annotations

import logging
import traceback
from functools import lru_cache

from ..text import describe
from .call import retry_of
from .context import by_hand
from .outcome import Ended, Raised, Unserved
from .retry import DEFAULT, Retries
from .run import Run
from .settle import Action, Bury, ByHand, Nack, Release, decide, settled_by_hand

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
        case ByHand(_, Nack(_, error) | Bury(error)) if isinstance(how, Raised):
            what, follows = "failed", "after it was settled by its handler, which holds if that was committed"
        case _:
            return
    frames = ""
    if isinstance(how, Raised) and isinstance(how.error, BaseException):
        frames = "\n" + "".join(traceback.format_tb(how.error.__traceback__, -_FRAMES)).rstrip()
    shown = (describe(error) or "")[:_LONGEST]
    log.warning("job %r (%s): %s, %s: %s%s", run.job.id, run.name, what, follows, shown, frames)


@lru_cache(maxsize=1_000)
def _given_back(why: str, grace: float) -> None:
    """Said once for each reason: every look at such a job gives it back again."""
    log.warning("given back, for %g s, to a worker that can do it; after that it fails: %s", grace, why)


def conclude(run: Run, default: Retries, wall: int, unserved_grace: float) -> Action:
    """What becomes of a job whose attempt has ended; said in the log where it failed."""
    assert run.how is not None
    try:
        retry = default if run.call is None else retry_of(run.call, default)
        action = decide(run.job, run.how, retry, wall, unserved_grace=unserved_grace)
        if run.context in by_hand:
            action = settled_by_hand(run.job, by_hand[run.context], action, retry)
        report(run, run.how, action)
        if isinstance(action, Release) and isinstance(run.how, Raised) and isinstance(run.how.error, Unserved):
            _given_back(describe(run.how.error) or "", unserved_grace)
    except Exception as error:  # else the job would keep its slot for ever
        log.exception("job %r: no action could be found for %s", run.job.id, type(run.how).__name__)
        action = Nack(DEFAULT.delay(run.job.attempt), describe(error) or "")
    run.error = action.error if isinstance(action, Nack | Bury) else None
    return action
