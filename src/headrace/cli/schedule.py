"""What a schedule will do, before it does it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import click

from ..clock import SystemClock, to_datetime
from .session import Session, common, pass_session
from .terminal import console

if TYPE_CHECKING:
    from rich.text import Text

    from ..pool.balance import Balance
    from ..pool.schedule import Schedule, Slot
    from .chart import Day, Marks

HEIGHTS = {1: 10, 7: 3}
"""How many lines a day takes, by how many days are shown."""
LEAST, MOST = 1, 8


@click.group()
def schedule() -> None:
    """Schedules: how many workers a pool has when."""


@schedule.command()
@click.argument("path", metavar="[MODULE:NAME]", required=False)
@click.option("--range", "ranges", multiple=True, metavar="'[DAYS ]HH:MM-HH:MM=MIN..MAX'", help="In place of a module.")
@click.option("--zone", default="UTC", show_default=True, help="Whose clocks count, for --range.")
@click.option("--min", "least", type=int, metavar="N", help="Outside the ranges; else the pool's own, or 1.")
@click.option("--max", "most", type=int, metavar="N", help="Outside the ranges; else the pool's own, or 8.")
@click.option("--days", type=click.Choice(["1", "7"]), default="1", show_default=True, help="A day, or a week.")
@click.option("--from", "first", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE", help="The first day; else today.")
@common()
@pass_session
def preview(
    session: Session,
    path: str | None,
    ranges: Sequence[str],
    zone: str,
    least: int | None,
    most: int | None,
    days: str,
    first: datetime | None,
) -> None:
    """Draw the coming day or week of a pool or a schedule, or of the ranges given.

    \b
    headrace schedule preview shop.jobs:pool --days 7
    headrace schedule preview --range '08:00-12:00=2..8' --range 'Fri 22:00-06:00=0..2' --zone Europe/Paris

    With --json: each stretch of time with its limits, and what is odd about the days.
    """
    if bool(path) == bool(ranges):
        raise click.UsageError("Name either MODULE:NAME or at least one --range.")
    if first and not 1900 <= first.year <= 9000:
        raise click.BadParameter(f"{first:%Y-%m-%d} is not from 1900 to 9000.", param_hint="--from")
    found, balance = _of_ranges(ranges, zone) if path is None else _loaded(session, path)
    balance = _balance(balance, least, most)
    begin = first.date() if first else to_datetime(SystemClock().wall()).astimezone(found.zone).date()
    if session.json:
        session.print_json(_as_json(found, balance, begin, int(days)))
    else:
        _draw(found, balance, begin, int(days))


def _of_ranges(ranges: Sequence[str], zone: str) -> tuple[Schedule, Balance | None]:
    from ..pool import Hours, Schedule

    made = Schedule(zone=zone)
    for text in ranges:
        parts = re.fullmatch(r"(?P<range>[^=]+)=([0-9]{1,9})\.\.([0-9]{1,9})", text)
        if not parts:
            raise click.BadParameter(f"{text!r} is not of the form '08:00-12:00=2..8'.", param_hint="--range")
        made = made.add(parts[1], Hours(min=int(parts[2]), max=int(parts[3])))
    return made, None


def _loaded(session: Session, path: str) -> tuple[Schedule, Balance | None]:
    """A schedule, or a pool's, with the pool's balance."""
    from ..errors import ConfigError
    from ..loading import load
    from ..pool import Pool, Schedule

    if session.given_url:
        os.environ["HEADRACE_URL"] = session.given_url  # the module may well connect
    found = load(path)
    if isinstance(found, Schedule):
        return found, None
    if not isinstance(found, Pool):
        raise ConfigError(f"{path!r} is of type {type(found).__name__}, neither a Schedule nor a Pool")
    if found.schedule is None:
        raise ConfigError(f"{path!r} is a pool without a schedule: it has the same limits at any time")
    return found.schedule, found.balance


def _balance(own: Balance | None, least: int | None, most: int | None) -> Balance:
    from msgspec.structs import replace

    from ..pool import Balance

    base = own or Balance(min=min(LEAST, MOST if most is None else most), max=max(MOST, least or 0))
    given = {name: value for name, value in (("min", least), ("max", most)) if value is not None}
    return replace(base, **given)


def _draw(schedule: Schedule, balance: Balance, begin: date, days: int) -> None:
    from rich.text import Text

    from .chart import GUTTER, PLAIN, WIDTHS, Marks, axis, band, look

    screen = console()
    marks = Marks() if screen.encoding.lower().startswith("utf") else PLAIN
    columns = next((width for width in WIDTHS if GUTTER + width < screen.width), WIDTHS[-1])
    seen = look(schedule, balance, begin, days)
    top = max(max(day.high) for day in seen) or 1
    lines: list[Text] = []
    for day in seen:
        lines.append(Text(f"{day.date:%a %Y-%m-%d}", "bold").append(f"  {day.note}" if day.note else "", "yellow"))
        lines += [_coloured(line, marks) for line in band(day, top, HEIGHTS[days], columns, marks)]
    lines += map(Text, axis(columns))
    key = f"; {marks.skipped} no such time" if any(0 in day.times for day in seen) else ""
    lines.append(Text(f"\n{marks.least} at least, {marks.most} at most so many workers{key}; times of {schedule.zone}"))
    lines += [Text(f"  {slot}") for slot in schedule.slots]
    lines.append(Text(f"  else {balance.min}..{balance.max}"))
    for line in lines:
        screen.print(line, no_wrap=True, crop=False, overflow="ignore")


def _coloured(line: str, marks: Marks) -> Text:
    from rich.text import Text

    text = Text(line)
    text.highlight_regex(f"[{re.escape(marks.least + marks.most)}]+", "green")
    return text


def _as_json(schedule: Schedule, balance: Balance, begin: date, days: int) -> dict[str, Any]:
    from .chart import bounds, look

    since, until = bounds(schedule, begin, days)
    return {
        "zone": str(schedule.zone),
        "from": _local(since, schedule),
        "until": _local(until, schedule),
        "stretches": [_stretch(schedule, balance, *each) for each in schedule.walk(since, until)],
        "days": [_day(day) for day in look(schedule, balance, begin, days)],
    }


def _stretch(schedule: Schedule, balance: Balance, begin: datetime, end: datetime, slot: Slot | None) -> dict[str, Any]:
    from msgspec.structs import asdict

    return {
        "from": _local(begin, schedule),
        "until": _local(end, schedule),
        "seconds": (end - begin).total_seconds(),
        "range": slot.range if slot else None,
        **asdict(schedule.limits(balance, begin)),
    }


def _day(day: Day) -> dict[str, Any]:
    return {"date": day.date.isoformat(), "hours": day.hours, "skipped": day.spans(0), "twice": day.spans(2)}


def _local(moment: datetime, schedule: Schedule) -> str:
    """With its offset to UTC, so that it is one moment, also in the hour that comes twice."""
    return moment.astimezone(schedule.zone).isoformat()
