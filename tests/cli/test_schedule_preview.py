"""A schedule is drawn as it will be: by the clock on the wall, with the odd days marked."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from cli_program import COMMAND
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.chart import PLAIN, Day, Marks, band, look
from headrace.pool.balance import Balance
from headrace.pool.hours import Hours
from headrace.pool.schedule import Schedule

Cli = Callable[..., Result]
SHOP = ["--range", "08:00-12:00=5..10", "--range", "Fri 22:00-06:00=0..2", "--zone", "Europe/Paris"]


def preview(cli: Cli, *args: str) -> list[str]:
    result = cli("schedule", "preview", *args)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_day_is_drawn_with_time_to_the_right_and_workers_upwards(cli: Cli) -> None:
    lines = preview(cli, *SHOP, "--from", "2026-05-28", "--min", "1", "--max", "4")
    inside, outside = "█" * 12, "░" * 24
    assert lines == [
        "Thu 2026-05-28",
        f"   10 {' ' * 24}{'░' * 12}",
        *[f"      {' ' * 24}{'░' * 12}"] * 4,
        f"      {' ' * 24}{inside}",
        *[f"      {outside}{inside}{'░' * 36}"] * 3,
        f"      {'█' * 72}",
        "      |--------|--------|--------|--------|--------|--------|--------|--------|",
        "      00       03       06       09       12       15       18       21       24",
        "",
        "█ at least, ░ at most so many workers; times of Europe/Paris",
        "  08:00-12:00 5..10",
        "  Fri 22:00-06:00 0..2",
        "  else 1..4",
    ]


@pytest.mark.parametrize(
    ("first", "marked"),
    [
        ("2026-03-26", "Sun 2026-03-29  23 h: 02:00-03:00 is skipped"),
        ("2026-10-22", "Sun 2026-10-25  25 h: 02:00-03:00 comes twice"),
    ],
)
def test_week_marks_the_days_on_which_clocks_change(cli: Cli, first: str, marked: str) -> None:
    lines = preview(cli, *SHOP, "--from", first, "--days", "7")
    days = [line for line in lines if line[:4].strip() in ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")]
    assert len(days) == 7
    assert [line for line in days if " h: " in line] == [marked]
    rows = lines[lines.index(marked) + 1 :][:3]
    crossed = [line.ljust(80)[12:15] == "///" for line in rows]
    assert crossed == ["skipped" in marked] * 3
    assert any("no such time" in line for line in lines) == ("skipped" in marked)


def test_narrow_terminal_gets_fewer_columns(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    result = cli("schedule", "preview", *SHOP, "--from", "2026-05-28")
    assert "|-----|-----|-----|-----|-----|-----|-----|-----|" in result.stdout
    assert "\x1b[32m" in result.stdout


def test_pool_is_shown_with_its_own_balance(cli: Cli) -> None:
    assert preview(cli, "cli_hours:pool", "--from", "2026-05-28")[-1] == "  else 3..6"
    assert preview(cli, "cli_hours:pool", "--from", "2026-05-28", "--max", "9")[-1] == "  else 3..9"
    assert preview(cli, "cli_hours:schedule", "--from", "2026-05-28")[-1] == "  else 1..8"
    assert preview(cli, "cli_hours:schedule", "--from", "2026-05-28", "--min", "12")[-1] == "  else 12..12"


def test_module_sees_the_url_that_is_given(cli: Cli) -> None:
    preview(cli, "cli_hours:pool", "--url", "memory://")
    assert os.environ["HEADRACE_URL"] == "memory://"


def test_preview_begins_today(cli: Cli) -> None:
    before = datetime.now(UTC).date()
    shown = preview(cli, "--range", "08:00-12:00=5..10")[0]
    assert shown in (f"{day:%a %Y-%m-%d}" for day in (before, before + timedelta(days=1)))


def test_json_has_every_stretch_and_the_odd_days(cli: Cli) -> None:
    [line] = preview(cli, "cli_hours:pool", "--from", "2026-10-24", "--days", "7", "--json")
    report = json.loads(line)
    assert report["zone"] == "Europe/Paris"
    assert (report["from"], report["until"]) == ("2026-10-24T00:00:00+02:00", "2026-10-31T00:00:00+01:00")
    assert report["stretches"][3] == {
        "from": "2026-10-24T22:00:00+02:00",
        "until": "2026-10-25T06:00:00+01:00",
        "seconds": 9 * 3600.0,
        "range": "Sat 22:00-06:00",
        "min": 0,
        "max": 2,
        "wakeup_factor": 0.6,
        "sleep_factor": 0.5,
    }
    assert report["stretches"][0]["range"] is None
    assert sum(each["seconds"] for each in report["stretches"]) == 7 * 86_400 + 3600
    assert report["days"][:2] == [
        {"date": "2026-10-24", "hours": 24.0, "skipped": [], "twice": []},
        {"date": "2026-10-25", "hours": 25.0, "skipped": [], "twice": ["02:00-03:00"]},
    ]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ([], 2, "Name either MODULE:NAME or at least one --range"),
        (["cli_hours:pool", "--range", "08:00-12:00=1..2"], 2, "Name either MODULE:NAME or at least one --range"),
        (["--range", "08:00-12:00"], 2, "'08:00-12:00' is not of the form '08:00-12:00=2..8'"),
        (["--range", "08:00-12:00=2"], 2, "is not of the form"),
        (["--range", "08:00-12:00=1..2", "--from", "9999-12-31"], 2, "9999-12-31 is not from 1900 to 9000"),
        (["--range", "08:00-12:00=1..2", "--days", "3"], 2, "'3' is not one of"),
        (["--range", "08:00-12:00=8..2"], 3, "hours: min: 8 is more than max, 2"),
        (["--range", "08:00-32:00=1..2"], 3, "hour: 32 is outside 0 to 23"),
        (["--range", "08:00-12:00=1..2", "--zone", "Mars/Base"], 3, "zone: 'Mars/Base' is not known"),
        (["--range", "08:00-12:00=1..2", "--min", "5", "--max", "2"], 3, "balance: min: 5 is more than max, 2"),
        (["--range", "08:00-12:00=1..2", "--max", "0"], 3, "balance: max: 0 is not"),
        (
            ["cli_hours:static"],
            3,
            "'cli_hours:static' is a pool without a schedule: it has the same limits at any time",
        ),
        (["cli_hours:queue"], 3, "Queue, neither a Schedule nor a Pool"),
        (["cli_hours:pol"], 3, "module 'cli_hours' has no 'pol'"),
        (["cli_hours"], 3, "'cli_hours' does not name anything in a module; write module:name"),
    ],
)
def test_mistake_is_told_in_one_line(cli: Cli, args: list[str], code: int, said: str) -> None:
    result = cli("schedule", "preview", *args)
    assert result.exit_code == code
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_terminal_without_unicode_gets_plain_marks(env: dict[str, str]) -> None:
    command = [*COMMAND, "schedule", "preview", "--range", "08:00-12:00=5..10", "--from", "2026-05-28"]
    ended = subprocess.run(command, env={**env, "PYTHONIOENCODING": "ascii"}, capture_output=True, check=True)
    assert b"# at least, . at most so many workers" in ended.stdout


BALANCE = Balance(min=1, max=4)


def test_shortest_range_is_seen() -> None:
    schedule = Schedule({"08:10:00.500-08:10:00.501": Hours(min=7, max=9)}, zone="Europe/Paris")
    [day] = look(schedule, BALANCE, datetime(2026, 5, 28, tzinfo=UTC).date(), 1)
    assert (day.low[490], day.high[490]) == (7, 9)
    assert set(day.low[:490] + day.low[491:]) == {1}
    assert band(day, 9, 1, 72, Marks()) == [f"    9 {'█' * 72}"]
    assert band(day, 9, 9, 72, PLAIN)[0] == f"    9 {' ' * 24}."


def test_day_that_does_not_exist_is_crossed_out() -> None:
    schedule = Schedule({"08:00-12:00": Hours(min=7, max=9)}, zone="Pacific/Apia")
    thursday, friday, saturday = look(schedule, BALANCE, datetime(2011, 12, 29, tzinfo=UTC).date(), 3)
    assert friday.note == "0 h: 00:00-24:00 is skipped"
    assert band(friday, 9, 2, 24, Marks()) == [f"    9 {'/' * 24}", f"      {'/' * 24}"]
    assert (thursday.note, saturday.note) == ("", "")


def test_hour_that_comes_again_after_midnight_belongs_to_the_day_before() -> None:
    schedule = Schedule({"08:00-12:00": Hours(min=7, max=9)}, zone="America/St_Johns")  # then back from 00:01 to 23:01
    saturday, sunday = look(schedule, BALANCE, datetime(2010, 11, 6, tzinfo=UTC).date(), 2)
    [alone] = look(schedule, BALANCE, saturday.date, 1)
    assert alone == saturday
    assert saturday.spans(2) == ["23:01-24:00"]
    assert sunday.spans(2) == ["00:00-00:01"]
    assert saturday.hours + sunday.hours == 49


@given(st.integers(0, 100), st.integers(1, 100), st.sampled_from([1, 3, 10]))
def test_least_is_never_drawn_above_the_most_and_one_worker_is_seen(low: int, more: int, height: int) -> None:
    day = Day(datetime(2026, 5, 28, tzinfo=UTC).date(), (1,) * 1440, (low,) * 1440, (low + more,) * 1440)
    column = [line[6:7] for line in band(day, 200, height, 24, Marks())]
    assert column == sorted(column, key=["", "░", "█"].index)
    assert column[-1] == ("█" if low else "░")
