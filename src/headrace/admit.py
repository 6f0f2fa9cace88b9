"""From the caller's job to a record that a store may keep: the one place where jobs are checked.

Whatever passes here fits every backend, and whatever does not is refused on every backend with the same words.
"""

from __future__ import annotations

from datetime import datetime

from .check import LONGEST
from .clock import FAR, LATEST, SECOND, to_micros
from .errors import InvalidJob
from .job import Job
from .native import storable, whole
from .record import Record, fresh
from .settings import Settings

LONGEST_ID = 255


def admit(job: Job, settings: Settings, now: int, skew: int) -> Record:
    """A fresh record: attempt 0, due at ``now`` or later (queue time, microseconds).

    Raises InvalidJob, naming the job and the reason. Its place in line (``seq``) is the store's to give.
    """
    if not isinstance(job, Job):
        raise InvalidJob(getattr(job, "id", job), f"a queue takes headrace.Job, not {type(job).__name__}")
    given = job  # the same, but that the compiled core knows its type, and reads its fields as they lie
    name = given.id if type(given.id) is str else ""
    if not name:
        raise InvalidJob(given.id, "the id is not a non-empty text")
    if len(name) > LONGEST_ID:
        raise InvalidJob(f"{name[:32]}…", f"the id has {len(name)} characters, {LONGEST_ID} are allowed")
    if not storable(name):
        raise InvalidJob(name, "the id holds NUL or a lone surrogate")
    if type(given.payload) is not bytes:
        raise InvalidJob(name, f"the payload is {type(given.payload).__name__}, not bytes: encode it first")
    payload = given.payload
    most = settings.max_payload
    if len(payload) > most:
        raise InvalidJob(
            name,
            f"the payload has {len(payload):,} bytes, {most:,} are allowed (max_payload): "
            "keep it elsewhere and enqueue where it is",
        )
    priority = given.priority
    if not whole(priority, -(2**31), 2**31 - 1):
        raise InvalidJob(name, f"priority {priority!r} is not a whole number from {-(2**31)} to {2**31 - 1}")
    attempts = settings.max_attempts if given.max_attempts is None else given.max_attempts
    if not whole(attempts, 1, 1_000_000):
        raise InvalidJob(name, f"max_attempts {attempts!r} is not a whole number from 1 to 1,000,000")
    due = enqueued = now
    latest = FAR
    if type(given.delay) is not float or given.delay != 0.0:
        due += _delay(name, given.delay)
    absolute = given.run_at is not None
    if absolute:
        if due > now:
            raise InvalidJob(name, "both delay and run_at are given: give one")
        due = max(now, _moment(name, "run_at", job.run_at) - skew)
    elif due == now and settings.default_delay != 0.0:
        due = now + round(settings.default_delay * SECOND)
    if given.deadline is not None:
        latest = _moment(name, "deadline", job.deadline)
    elif settings.default_deadline is not None:
        latest = min(due + skew + round(settings.default_deadline * SECOND), LATEST)
    if given.enqueued_at is not None:
        enqueued = min(now, _moment(name, "enqueued_at", job.enqueued_at) - skew)
    return fresh(name, payload, priority, attempts, enqueued, due, absolute, latest)


def _delay(name: str, delay: float) -> int:
    if isinstance(delay, (int, float)) and not isinstance(delay, bool) and 0 <= delay <= LONGEST:
        return round(delay * SECOND)
    raise InvalidJob(name, f"delay {delay!r} is not a number of seconds from 0 to {LONGEST:,}")


def _moment(name: str, what: str, moment: object) -> int:
    if not isinstance(moment, datetime):
        raise InvalidJob(name, f"{what} {moment!r} is not a datetime")
    try:
        if moment.utcoffset() is None:
            raise InvalidJob(name, f"{what} {moment} is naive: say which zone, e.g. datetime.now(UTC)")
        micros = to_micros(moment)
    except OverflowError:
        micros = LATEST + 1
    if micros > LATEST:
        raise InvalidJob(name, f"{what} {moment} is later than the calendar can show in UTC")
    return micros
