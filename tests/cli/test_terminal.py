"""Durations, times and text for people."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.terminal import line, moment, safe, span


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (0.0004, "0 ms"),
        (0.35, "350 ms"),
        (0.9999, "999 ms"),
        (1.0, "1.0 s"),
        (12.34, "12.3 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min"),
        (60, "1 min"),
        (200, "3 min 20 s"),
        (3599.6, "1 h"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
        (86_400, "1 d"),
        (187_200, "2 d 4 h"),
        (10_000_000, "115 d 17 h"),
    ],
)
def test_a_duration_is_shown_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_a_time_is_shown_in_utc() -> None:
    assert moment(datetime(2026, 3, 1, 8, 30, tzinfo=timezone(timedelta(hours=1)))) == "2026-03-01 07:30:00Z"
    assert moment(None) == "-"


@given(st.text())
def test_no_text_moves_the_cursor(text: str) -> None:
    assert all(each.isprintable() or each in "\n\t" for each in safe(text))
    assert line(text).isprintable()
    assert len(line(text)) <= 80


def test_ordinary_text_stays() -> None:
    assert safe("Grüße, 世界\n\t[bold]") == "Grüße, 世界\n\t[bold]"
    assert line("a\n  b") == "a b"
