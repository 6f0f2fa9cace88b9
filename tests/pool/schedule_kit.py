"""What the schedule's tests share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from headrace.pool.balance import Balance
from headrace.pool.hours import Hours
from headrace.pool.schedule import Schedule

PARIS = ZoneInfo("Europe/Paris")
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)
FEW, SOME, MANY = Hours(min=0, max=2), Hours(min=5, max=10), Hours(min=10, max=20)
BALANCE = Balance(min=1, max=4)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def naive(text: str) -> datetime:
    return utc(text).replace(tzinfo=None)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=PARIS)


def index(schedule: Schedule, now: datetime) -> int | None:
    slot = schedule.get(now)
    return None if slot is None else slot.index


def stretches(schedule: Schedule, begin: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    """When any range holds."""
    return [(since, until) for since, until, slot in schedule.walk(begin, end) if slot is not None]
