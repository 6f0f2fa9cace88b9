"""How a schedule is written, what is refused, and how it shows itself."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from datetime import UTC, date, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from schedule_kit import BALANCE, DAY, FEW, HOUR, MANY, MINUTE, SOME, at, index, naive, utc

from headrace.errors import ConfigError
from headrace.pool.hours import Days, Hours
from headrace.pool.schedule import Schedule, Slot


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("*-06:00", "00:00", "05:59"),
        ("22:00-*", "22:00", "23:59"),
        ("22:00-24:00", "22:00", "23:59"),
        ("22:00-00:00", "22:00", "23:59"),
        ("8:00 - 9:00", "08:00", "08:59"),
        ("*-24:00:00.000", "00:00", "23:59"),
    ],
)
def test_edges_of_a_day(text: str, first: str, last: str) -> None:
    schedule = Schedule({text: SOME}, days="Thu")
    inside = [minute for minute in range(-1440, 2880) if index(schedule, utc("2026-05-28") + minute * MINUTE) == 0]
    assert utc("2026-05-28") + inside[0] * MINUTE == utc(f"2026-05-28T{first}")
    assert utc("2026-05-28") + inside[-1] * MINUTE == utc(f"2026-05-28T{last}")
    assert len(inside) == inside[-1] - inside[0] + 1


@pytest.mark.parametrize(
    ("days", "on"),
    [
        (None, "1111111"),
        ("Mon-Fri", "1111100"),
        ("mon - FRI", "1111100"),
        ("Saturday,sunday", "0000011"),
        ("Fri-Mon", "1000111"),
        ("Wed", "0010000"),
        ("6,7", "0000011"),
        ("1-3, Sun", "1110001"),
        (["Tue", "Thu-Fri"], "0101100"),
        ({1, 7}, "1000001"),
        (5, "0000100"),
        ("Mon-Sun", "1111111"),
    ],
)
def test_days_are_names_or_numbers_from_monday_on(days: Days | None, on: str) -> None:
    schedule = Schedule({"12:00-13:00": SOME}, days=days)
    monday = utc("2026-06-01T12:00")
    assert "".join("01"[index(schedule, monday + day * DAY) == 0] for day in range(7)) == on


def test_days_in_a_range_go_before_those_of_the_schedule() -> None:
    schedule = Schedule({"08:00-09:00": FEW, "Sat-Sun 08:00-09:00": MANY}, days="Mon-Fri").add("10:00-11:00", SOME)
    assert [slot.range for slot in schedule.slots] == [
        "Mon-Fri 08:00-09:00",
        "Sat-Sun 08:00-09:00",
        "Mon-Fri 10:00-11:00",
    ]


WRONG_RANGES = [
    ("", "is not of the form '08:00-12:00'"),
    ("08:00", "'08:00' is not of the form '08:00-12:00'"),
    ("08:00-", "is not of the form"),
    ("08:00-09:00-10:00", "is not of the form"),
    ("Mon 08:00-09:00 Tue", "is not of the form '08:00-12:00' or 'Mon-Fri 08:00-12:00'"),
    ("8-12", "'8' is not a time: write HH:MM, HH:MM:SS or HH:MM:SS.mmm"),
    ("08:0-12:00", "'08:0' is not a time"),
    ("08:00-noon", "'noon' is not a time"),
    ("٠٨:00-12:00", "is not a time"),
    ("08:00.500-12:00", "is not a time"),
    ("24:00-12:00", "hour: 24 is outside 0 to 23"),
    ("08:00-25:00", "hour: 25 is outside 0 to 23"),
    ("08:00-24:01", "hour: 24 is outside 0 to 23"),
    ("108:00-12:00", "hour: 108 is outside 0 to 23"),
    ("08:60-12:00", "minute: 60 is outside 00 to 59"),
    ("08:00-12:00:60", "second: 60 is outside 00 to 59"),
    ("08:00-12:00:00.1000", "millisecond: 1000 is not three digits, 000 to 999"),
    ("08:00-12:00:00.5", "millisecond: 5 is not three digits"),
    ("08:00-08:00", "'08:00-08:00' ends where it begins; a whole day is '00:00-24:00'"),
    ("*-00:00", "ends where it begins"),
    ("Mo 08:00-12:00", "days: 'Mo': 'mo' is no day: write Mon to Sun, or 1 (Monday) to 7 (Sunday)"),
    ("0 08:00-12:00", "'0' is no day"),
    ("Mon,,Tue 08:00-12:00", "'' is no day"),
    ("Mon-Tue-Wed 08:00-12:00", "is no day"),
]


@pytest.mark.parametrize(("text", "said"), WRONG_RANGES)
def test_wrong_range_is_refused_with_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Schedule({text: SOME})
    assert said.lower() in str(caught.value).lower()


@given(st.text(max_size=30) | st.text("0123456789:-.* MonFri,", max_size=30))
def test_any_text_is_a_range_or_a_config_error(text: str) -> None:
    try:
        schedule = Schedule({text: SOME})
    except ConfigError:
        return
    assert schedule.next_change(utc("2026-05-28")) or schedule.get(utc("2026-05-28"))


def untyped(value: object) -> Any:
    """What a caller without a type checker may give."""
    return value


def make_wrong() -> Iterator[tuple[str, object]]:
    now = utc("2026-05-28")
    yield "min: 11 is more than max, 10", lambda: Hours(min=11, max=10)
    yield "hours: max: 0 is not a whole number from 1 to", lambda: Hours(min=0, max=0)
    yield "hours: min: -1 is not", lambda: Hours(min=-1, max=1)
    yield "hours: min: True is not", lambda: Hours(min=True, max=1)
    yield "wakeup_factor: 1.0 is not a number from 0 to 0.999999", lambda: Hours(min=1, max=2, wakeup_factor=1.0)
    yield "sleep_factor: nan is not", lambda: Hours(min=1, max=2, sleep_factor=float("nan"))
    yield "sleep_factor: -0.1 is not", lambda: Hours(min=1, max=2, sleep_factor=-0.1)
    yield "wakeup_factor: False is not", lambda: Hours(min=1, max=2, wakeup_factor=False)
    yield (
        "wakeup_factor: 0.2 is less than sleep_factor",
        lambda: Hours(min=1, max=2, wakeup_factor=0.2, sleep_factor=0.3),
    )
    yield "schedule: there are no ranges", lambda: Schedule({})
    yield "schedule: there are no ranges", lambda: Schedule.relative(now, {})
    yield "schedule: there are no ranges", lambda: Schedule().get(now)
    yield "schedule: there are no ranges", lambda: Schedule().max_over(BALANCE)
    yield "schedule: there are no ranges", lambda: Schedule().next_change(now)
    yield "range: 8 is not a text", lambda: Schedule({untyped(8): SOME})
    yield "is not of the form Hours(min=1, max=4)", lambda: Schedule({"08:00-12:00": untyped(BALANCE)})
    yield "zone: 'Europe/Pari' is not known", lambda: Schedule(zone="Europe/Pari")
    yield "zone: '../etc' is not known", lambda: Schedule(zone="../etc")
    yield "zone: '' is not known", lambda: Schedule(zone="")
    yield "zone: 3 is not known", lambda: Schedule(zone=untyped(3))
    yield "days: there are none", lambda: Schedule(days=[])
    yield "days: 1.5 is no day", lambda: Schedule(days=untyped(1.5))
    yield "days: True: 'true' is no day", lambda: Schedule(days=True)
    yield "days: 'Sat': the range", lambda: Schedule().add("Fri 08:00-09:00", SOME, days="Sat")
    yield "ordered: 1 is neither True nor False", lambda: Schedule(ordered=untyped(1))
    yield "start: datetime", lambda: Schedule.relative(naive("2026-01-01"), {"0-1s": SOME})
    yield "days: 'Mon'", lambda: Schedule.relative(now, {"0-1s": SOME}).add("1s-2s", SOME, days="Mon")
    for moment in (naive("2026-01-01"), date(2026, 1, 1), 1_800_000_000, None):
        yield "is not a datetime with a time zone", lambda moment=moment: Schedule({"*-*": SOME}).get(moment)
        yield "is not a datetime with a time zone", lambda moment=moment: Schedule({"*-*": SOME}).next_change(moment)
        yield "is not a datetime with a time zone", lambda moment=moment: [*Schedule({"*-*": SOME}).walk(moment, now)]


@pytest.mark.parametrize(("said", "make"), [*make_wrong()])
def test_wrong_setting_is_named_with_its_value(said: str, make: object) -> None:
    assert callable(make)
    with pytest.raises(ConfigError) as caught:
        make()
    assert said.lower() in str(caught.value).lower()


def test_schedule_is_frozen() -> None:
    ranges = {"08:00-12:00": SOME}
    schedule = Schedule(ranges)
    ranges["12:00-13:00"] = MANY
    more = schedule.add("13:00-14:00", FEW)
    assert [slot.hours for slot in schedule.slots] == [SOME]
    assert [slot.hours for slot in more.slots] == [SOME, FEW]
    with pytest.raises(AttributeError):
        schedule.slots[0].hours.min = 3  # type: ignore[misc]  # that it cannot be set is what is tested
    with pytest.raises(AttributeError):
        schedule.slots = ()  # type: ignore[misc]  # as above


def test_schedule_survives_a_copy_and_a_pickle() -> None:
    schedule = Schedule({"Fri 22:00-06:00": SOME}, zone="Europe/Paris")
    for other in (copy.deepcopy(schedule), pickle.loads(pickle.dumps(schedule))):
        assert other == schedule
        assert other.next_change(utc("2026-05-28")) == utc("2026-05-29T20:00")
    assert schedule != Schedule({"Fri 22:00-06:00": SOME})
    assert schedule != "Fri 22:00-06:00"


def test_schedule_shows_itself() -> None:
    schedule = Schedule(
        {
            "8:00-12:00": Hours(min=2, max=8, wakeup_factor=0.6, sleep_factor=0.25),
            "5-7,1 22:00-06:00:30.500": FEW,
            "Tue,Thu 12:30:05-*": SOME,
        },
        zone="Europe/Paris",
    )
    assert str(schedule) == (
        "Europe/Paris: 08:00-12:00 2..8 (wakeup 0.6, sleep 0.25); Fri-Mon 22:00-06:00:30.500 0..2; "
        "Tue,Thu 12:30:05-24:00 5..10"
    )
    assert repr(schedule) == f"<Schedule {schedule}>"
    assert str(schedule.get(at("2026-05-28T12:30:05"))) == "Tue,Thu 12:30:05-24:00 5..10"


def test_fixed_offset_is_a_zone_too() -> None:
    schedule = Schedule({"08:00-12:00": SOME}, zone=timezone(timedelta(hours=5, minutes=30)))
    assert schedule.next_change(utc("2026-05-28")) == utc("2026-05-28T02:30")


START = utc("2026-05-28T12:34:56.789")


def test_relative_ranges_happen_once_after_the_start() -> None:
    schedule = Schedule.relative(START, {"30s-1m": SOME, "1m30s-2m500ms": MANY, "1d1h-*": FEW})
    seconds = timedelta(seconds=1)
    wanted = [
        (START + 30 * seconds, START + 60 * seconds, Slot(0, "30s-1m", SOME)),
        (START + 90 * seconds, START + 120.5 * seconds, Slot(1, "1m30s-2m500ms", MANY)),
        (START + 25 * HOUR, START + 300 * DAY, Slot(2, "1d1h-*", FEW)),
    ]
    walked = list(schedule.walk(START - DAY, START + 300 * DAY))
    assert [each for each in walked if each[2] is not None] == wanted
    assert schedule.next_change(START + 25 * HOUR) is None
    assert schedule.limits(BALANCE, START) == BALANCE.limits
    assert str(schedule) == ("since 2026-05-28T12:34:56.789000+00:00: 30s-1m 5..10; 1m30s-2m500ms 10..20; 1d1h-* 0..2")
    assert schedule.zone is UTC


def test_relative_range_begins_with_the_start() -> None:
    schedule = Schedule.relative(START, {"*-10s": SOME}).add("10s-20s", FEW)
    assert [index(schedule, START + timedelta(seconds=each)) for each in (-1, 0, 9, 10, 20)] == [None, 0, 0, 1, None]
    assert Schedule.relative(START, {"0-10s": SOME}).slots == Schedule.relative(START, {"*-10s": SOME}).slots
    assert schedule.daily_max == 10


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("30s", "is not of the form '30s-1m'"),
        ("30-60", "'30' is not a time: write it as 500ms, 30s, 1m30s, 2h or 1d"),
        ("30s-30s", "does not end after it begins"),
        ("1m-30s", "does not end after it begins"),
        ("*-0", "does not end after it begins"),
        ("0-40000d", "is more than 100 years"),
        ("Mon 30s-1m", "days: 'Mon': a relative range has none"),
        ("30s-1m", "overlaps '0-1h'"),
    ],
)
def test_wrong_relative_range_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Schedule.relative(START, {"0-1h": FEW, text: SOME})
    assert said in str(caught.value)
