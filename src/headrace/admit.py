"""From the caller's job to a record that a store may keep: the one place where jobs are checked.

Whatever passes here fits every backend, and whatever does not is refused on every backend with the same words.
"""

from __future__ import annotations

from datetime import datetime

from .check import LONGEST
from .clock import LATEST, SECOND, to_micros
from .errors import InvalidJob
from .job import Job
from .record import Record
from .settings import Settings

LOWEST, HIGHEST = -(2**31), 2**31 - 1
LONGEST_ID = 255


def admit(job: Job, settings: Settings, now: int, skew: int) -> Record:
    """A fresh record: attempt 0, due at ``now`` or later (queue time, microseconds).

    Raises InvalidJob, naming the job and the reason. Its place in line (``seq``) is the store's to give.
    """
    if not isinstance(job, Job):
        raise InvalidJob(getattr(job, "id", job), f"a queue takes headrace.Job, not {type(job).__name__}")
    name = job.id
    if type(name) is not str or not name:
        raise InvalidJob(name, "the id is not a non-empty text")
    if len(name) > LONGEST_ID:
        raise InvalidJob(f"{name[:32]}…", f"the id has {len(name)} characters, {LONGEST_ID} are allowed")
    if "\0" in name or not (name.isascii() or _encodable(name)):
        raise InvalidJob(name, "the id holds NUL or a lone surrogate")
    payload = job.payload
    if type(payload) is not bytes:
        raise InvalidJob(name, f"the payload is {type(payload).__name__}, not bytes: encode it first")
    if len(payload) > settings.max_payload:
        raise InvalidJob(
            name,
            f"the payload has {len(payload):,} bytes, {settings.max_payload:,} are allowed (max_payload): "
            "keep it elsewhere and enqueue where it is",
        )
    priority = job.priority
    if type(priority) is not int or not LOWEST <= priority <= HIGHEST:
        raise InvalidJob(name, f"priority {priority!r} is not a whole number from {LOWEST} to {HIGHEST}")
    attempts = settings.max_attempts if job.max_attempts is None else job.max_attempts
    if type(attempts) is not int or not 1 <= attempts <= 1_000_000:
        raise InvalidJob(name, f"max_attempts {attempts!r} is not a whole number from 1 to 1,000,000")
    delay = 0 if type(job.delay) is float and job.delay == 0 else _delay(name, job.delay)
    absolute = job.run_at is not None
    due = now + delay
    if job.run_at is not None:
        if delay:
            raise InvalidJob(name, "both delay and run_at are given: give one")
        due = max(now, _moment(name, "run_at", job.run_at) - skew)
    elif not delay and settings.default_delay:
        due = now + round(settings.default_delay * SECOND)
    deadline = None
    if job.deadline is not None:
        deadline = _moment(name, "deadline", job.deadline)
    elif settings.default_deadline is not None:
        deadline = min(due + skew + round(settings.default_deadline * SECOND), LATEST)
    enqueued = now
    if job.enqueued_at is not None:
        enqueued = min(now, _moment(name, "enqueued_at", job.enqueued_at) - skew)
    return Record(name, payload, priority, attempts, enqueued, due, absolute, deadline)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


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
