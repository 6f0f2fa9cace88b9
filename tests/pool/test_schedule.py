"""Which limits hold when: by the clock on the wall, on the nights of a clock change too."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from schedule_kit import BALANCE, DAY, FEW, HOUR, MANY, MINUTE, SOME, TICK, at, index, naive, stretches, utc

from headrace.errors import ConfigError
from headrace.pool.balance import Balance, Limits
from headrace.pool.hours import Hours
from headrace.pool.schedule import Schedule


def scanned(schedule: Schedule, begin: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    """The same by trying each minute."""
    found: list[tuple[datetime, datetime]] = []
    while begin < end:
        if schedule.get(begin) is not None:
            if found and found[-1][1] == begin:
                found[-1] = (found[-1][0], begin + MINUTE)
            else:
                found.append((begin, begin + MINUTE))
        begin += MINUTE
    return found


WINDOWS = [
    # On an ordinary weekend, then on both weekends of a clock change: the night of Friday, then that of Saturday.
    ("22:00-06:00", "Fri", "2026-05-28", ["2026-05-29T20:00 2026-05-30T04:00"]),
    ("22:00-06:00", "Fri", "2026-03-26", ["2026-03-27T21:00 2026-03-28T05:00"]),
    ("22:00-06:00", "Fri", "2026-10-22", ["2026-10-23T20:00 2026-10-24T04:00"]),
    ("22:00-06:00", "Sat", "2026-03-26", ["2026-03-28T21:00 2026-03-29T04:00"]),  # 7 hours
    ("22:00-06:00", "Sat", "2026-10-22", ["2026-10-24T20:00 2026-10-25T05:00"]),  # 9 hours
    ("09:00-17:00", "Fri", "2026-03-26", ["2026-03-27T08:00 2026-03-27T16:00"]),
    ("00:00-24:00", "Sun", "2026-03-26", ["2026-03-28T23:00 2026-03-29T22:00"]),  # 23 hours
    ("*-*", "Sun", "2026-10-22", ["2026-10-24T22:00 2026-10-25T23:00"]),  # 25 hours
    ("02:00-03:00", "Sun", "2026-03-26", []),  # skipped
    ("02:15-02:45", "Sun", "2026-03-26", []),
    ("01:30-02:30", "Sun", "2026-03-26", ["2026-03-29T00:30 2026-03-29T01:00"]),
    ("02:30-03:30", "Sun", "2026-03-26", ["2026-03-29T01:00 2026-03-29T01:30"]),
    ("02:00-03:00", "Sun", "2026-10-22", ["2026-10-25T00:00 2026-10-25T02:00"]),  # both passes
    ("02:15-02:45", "Sun", "2026-10-22", ["2026-10-25T00:15 2026-10-25T00:45", "2026-10-25T01:15 2026-10-25T01:45"]),
    ("01:30-02:30", "Sun", "2026-10-22", ["2026-10-24T23:30 2026-10-25T00:30", "2026-10-25T01:00 2026-10-25T01:30"]),
]


@pytest.mark.parametrize(("text", "days", "thursday", "open_"), WINDOWS)
def test_a_window_is_open_at_exactly_these_minutes_from_thursday_to_monday(
    text: str, days: str, thursday: str, open_: list[str]
) -> None:
    schedule = Schedule({text: SOME}, zone="Europe/Paris", days=days)
    begin = at(thursday).astimezone(UTC)
    end = (at(thursday) + 4 * DAY).astimezone(UTC)
    wanted = [(utc(each.split()[0]), utc(each.split()[1])) for each in open_]
    assert scanned(schedule, begin, end) == wanted
    assert stretches(schedule, begin, end) == wanted


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York", "Pacific/Kiritimati"])
def test_the_zone_of_the_process_has_no_influence(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = Schedule({"Sat 22:00-06:00": SOME}, zone="Europe/Paris")
    begin, end = utc("2026-03-26"), utc("2026-03-30")
    before = schedule.get(at("2026-03-28T23:00")), schedule.next_change(begin), stretches(schedule, begin, end)
    try:
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        now = datetime.now().astimezone()  # some other zone's time is as good as any
        assert schedule.get(now) == schedule.get(now.astimezone(UTC))
        after = schedule.get(at("2026-03-28T23:00")), schedule.next_change(begin), stretches(schedule, begin, end)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert after == before


def test_the_moment_counts_and_not_the_zone_in_which_it_is_given() -> None:
    schedule = Schedule({"08:00-12:00": SOME}, zone="Europe/Paris")
    moment = at("2026-05-28T08:00")
    for zone in (UTC, ZoneInfo("Asia/Tokyo"), timezone(timedelta(hours=-9))):
        assert index(schedule, moment.astimezone(zone)) == 0
        assert index(schedule, (moment - TICK).astimezone(zone)) is None


def test_left_edge_is_inside_and_right_edge_outside() -> None:
    schedule = Schedule({"08:00-12:00": SOME, "12:00-12:00:30": MANY, "12:00:30-12:00:30.250": FEW})
    edges = ["08:00", "12:00", "12:00:30", "12:00:30.250"]
    moments = [utc(f"2026-05-28T{edge}") for edge in edges]
    assert [index(schedule, moment) for moment in moments] == [0, 1, 2, None]
    assert [index(schedule, moment - TICK) for moment in moments] == [None, 0, 1, 2]


def test_range_over_midnight_of_sunday_ends_on_monday() -> None:
    schedule = Schedule({"22:00-06:00": SOME}, days="Sun")
    assert stretches(schedule, utc("2026-05-28"), utc("2026-06-04")) == [
        (utc("2026-05-31T22:00"), utc("2026-06-01T06:00"))
    ]
    assert index(schedule, utc("2026-05-31T05:00")) is None


def test_same_range_on_the_next_day_is_no_change() -> None:
    schedule = Schedule({"00:00-24:00": SOME}, zone="Europe/Paris")
    assert schedule.next_change(utc("2026-03-28")) is None
    assert index(schedule, utc("2026-03-29T01:00")) == 0


def test_change_that_a_skipped_hour_swallows_comes_a_week_later() -> None:
    schedule = Schedule({"Sun 02:15-02:45": SOME}, zone="Europe/Paris")
    before = at("2026-03-22T02:45")
    assert schedule.next_change(before) == at("2026-04-05T02:15")


def test_midnight_that_does_not_exist_and_a_day_that_does_not() -> None:
    santiago = Schedule({"Sun 00:00-06:00": SOME}, zone="America/Santiago")
    assert stretches(santiago, utc("2026-09-05"), utc("2026-09-07")) == [
        (utc("2026-09-06T04:00"), utc("2026-09-06T09:00"))
    ]
    apia = Schedule({"Fri 08:00-12:00": SOME}, zone="Pacific/Apia")  # had no Friday, 30 December 2011
    assert stretches(apia, utc("2011-12-24"), utc("2012-01-06")) == [(utc("2012-01-05T18:00"), utc("2012-01-05T22:00"))]


def test_summer_time_that_lasts_a_week_is_not_overlooked() -> None:
    schedule = Schedule({"08:00-09:00": SOME}, zone="America/Boa_Vista")  # 8 to 15 October 2000
    begin, end = utc("2000-10-06"), utc("2000-10-18")
    assert stretches(schedule, begin, end) == scanned(schedule, begin, end)
    assert {since.hour for since, _ in stretches(schedule, begin, end)} == {11, 12}


def test_changes_end_with_the_calendar() -> None:
    schedule = Schedule({"08:00-12:00": SOME}, zone="America/New_York")
    assert schedule.next_change(utc("9999-12-31T17:00")) is None
    assert schedule.get(datetime.max.replace(tzinfo=UTC)) is None
    assert schedule.get(datetime.min.replace(tzinfo=UTC)) is None


times = st.integers(0, 1439).map(lambda minute: f"{minute // 60:02}:{minute % 60:02}")
spans = st.tuples(times, times).filter(lambda pair: pair[0] != pair[1]).map("-".join)
weekdays = st.sets(st.integers(1, 7), min_size=1)
zones = st.sampled_from(
    ["UTC", "Europe/Paris", "America/New_York", "America/Santiago", "Australia/Lord_Howe", "Asia/Kolkata", "Asia/Gaza"]
) | st.sampled_from(sorted(available_timezones()))
moments = st.datetimes(naive("1990-01-01"), naive("2060-01-01"), timezones=st.just(UTC))
nights = st.builds(  # clocks change between Saturday and Sunday, mostly
    lambda week, seconds: datetime(2026, 1, 3, 12, tzinfo=UTC) + timedelta(weeks=week, seconds=seconds),
    st.integers(0, 52),
    st.integers(0, 86_400),
)


@st.composite
def schedules(draw: st.DrawFn) -> tuple[Schedule, list[tuple[str, set[int]]]]:
    parts = draw(st.lists(st.tuples(spans, weekdays), min_size=1, max_size=4))
    schedule = Schedule(zone=draw(zones), ordered=True)
    for text, days in parts:
        schedule = schedule.add(text, SOME, days=days)
    return schedule, parts


def by_the_book(parts: list[tuple[str, set[int]]], wall: datetime) -> int | None:
    """What a person would say who reads the clock on the wall."""
    shown, today = f"{wall:%H:%M:%S.%f}", wall.isoweekday()
    yesterday = (wall.date() - DAY).isoweekday()
    for number, (text, days) in enumerate(parts):
        left, right = text.split("-")
        if left < right:
            inside = today in days and left <= shown < right
        else:
            inside = (today in days and left <= shown) or (yesterday in days and shown < right)
        if inside:
            return number
    return None


@given(schedules(), moments | nights)
def test_range_that_holds_is_the_one_that_the_clock_on_the_wall_says(
    made: tuple[Schedule, list[tuple[str, set[int]]]], now: datetime
) -> None:
    schedule, parts = made
    assert index(schedule, now) == by_the_book(parts, now.astimezone(schedule.zone))


@given(schedules(), moments | nights, st.lists(st.floats(0, 1), max_size=5))
def test_nothing_changes_before_the_next_change_and_then_it_does(
    made: tuple[Schedule, list[tuple[str, set[int]]]], now: datetime, shares: list[float]
) -> None:
    schedule, _ = made
    change = schedule.next_change(now)
    assume(change is not None)
    assert change is not None
    assert change > now
    here = schedule.get(now)
    assert schedule.get(change) != here
    assert schedule.get(change - TICK) == here
    for share in shares:
        assert schedule.get(now + (change - TICK - now) * share) == here


@settings(max_examples=40)
@given(schedules(), nights)
def test_walking_from_change_to_change_meets_every_minute_at_which_something_changes(
    made: tuple[Schedule, list[tuple[str, set[int]]]], night: datetime
) -> None:
    schedule, _ = made
    begin = night.replace(second=0, microsecond=0)
    end = begin + 2 * DAY
    walked = list(schedule.walk(begin, end))
    held = [slot for since, until, slot in walked for _ in range((until - since) // MINUTE)]
    assert held == [schedule.get(begin + step * MINUTE) for step in range(2 * 1440)]
    assert walked[0][0] == begin
    assert walked[-1][1] == end
    assert all(one[1] == two[0] and one[2] != two[2] for one, two in pairwise(walked))


def test_gap_has_the_limits_of_the_balance() -> None:
    schedule = Schedule({"08:00-12:00": SOME})
    assert schedule.get(utc("2026-05-28T07:59")) is None
    assert schedule.limits(BALANCE, utc("2026-05-28T07:59")) == BALANCE.limits == Limits(1, 4, 0.75, 0.5)


@pytest.mark.parametrize(
    ("wakeup", "sleep", "factors"),
    [
        (0, 0, (0.75, 0.5)),
        (0.9, 0, (0.9, 0.5)),
        (0, 0.1, (0.75, 0.1)),
        (0.6, 0.2, (0.6, 0.2)),
        (0.3, 0, (0.3, 0.3)),  # what is inherited gives way
        (0, 0.8, (0.8, 0.8)),
    ],
)
def test_factor_of_zero_is_inherited(wakeup: float, sleep: float, factors: tuple[float, float]) -> None:
    schedule = Schedule({"*-*": Hours(min=2, max=3, wakeup_factor=wakeup, sleep_factor=sleep)})
    assert schedule.limits(BALANCE, utc("2026-05-28")) == Limits(2, 3, *factors)


def test_most_workers_of_a_day_and_at_all() -> None:
    schedule = Schedule({"08:00-12:00": SOME, "12:00-16:00": MANY})
    assert schedule.daily_max == 20
    assert schedule.max_over(BALANCE) == 20
    assert schedule.max_over(Balance(min=1, max=50)) == 50


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("08:00-12:00", "11:59-13:00"),
        ("08:00-12:00", "08:00-12:00"),
        ("*-*", "Wed 08:00-12:00"),
        ("22:00-06:00", "05:00-07:00"),
        ("Sun 22:00-06:00", "Mon 05:00-07:00"),
        ("Mon-Wed 10:00-11:00", "Wed-Fri 10:30-10:31"),
    ],
)
def test_overlap_is_refused_unless_the_first_is_to_hold(first: str, second: str) -> None:
    with pytest.raises(ConfigError, match=r"overlaps .*ordered=True"):
        Schedule().add(first, SOME).add(second, FEW)
    schedule = Schedule(ordered=True).add(first, SOME).add(second, FEW)
    alone = Schedule().add(first, SOME)
    for moment in (utc("2026-06-01") + step * MINUTE for step in range(7 * 1440)):
        if index(alone, moment) == 0:
            assert index(schedule, moment) == 0


def test_ranges_that_touch_do_not_overlap() -> None:
    schedule = Schedule({"22:00-06:00": FEW, "06:00-22:00": MANY, "Mon 00:00-00:01": SOME}, ordered=True)
    assert len({index(schedule, utc("2026-06-01") + step * HOUR) for step in range(24)}) == 2
    Schedule({"Sun 22:00-06:00": FEW, "Mon 06:00-08:00": MANY, "Sat 22:00-22:00:00.001": SOME})


@given(schedules())
def test_range_as_it_is_shown_means_the_same(made: tuple[Schedule, list[tuple[str, set[int]]]]) -> None:
    schedule, _ = made
    again = Schedule(zone=str(schedule.zone), ordered=True)
    for slot in schedule.slots:
        again = again.add(slot.range, slot.hours)
    assert again == schedule
    assert hash(again) == hash(schedule)
