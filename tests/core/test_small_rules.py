"""The pure rules below the queue: the calendar's line, ids, texts, checks of settings."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from headrace import ConfigError, check, connect, ids, text
from headrace.clock import EPOCH, LATEST, SECOND, SystemClock, to_datetime, to_micros
from headrace.testing import VirtualClock
from headrace.timeline import TOLERANCE, Timeline, step


def test_queue_time_begins_with_the_calendar_and_never_steps() -> None:
    clock = VirtualClock()
    line = Timeline(clock)
    assert line.now() == clock.wall()
    clock.step(3600)
    clock.advance(5)
    assert line.now() == clock.wall() - 3600 * SECOND
    assert line.stepped(line.now()) == 3600 * SECOND


def test_a_step_is_seen_by_the_next_look_and_until_the_line_follows_it() -> None:
    clock = VirtualClock()
    line = Timeline(clock)
    assert line.stepped(line.now()) == 0
    clock.step(3600)
    assert [line.stepped(line.now()), line.stepped(line.now())] == [3600 * SECOND] * 2
    line.skew += 3600 * SECOND
    assert line.stepped(line.now()) == 0


def test_a_look_at_the_machines_calendar_holds_for_a_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    wall = [to_micros(EPOCH) + 3600 * SECOND]
    monkeypatch.setattr(SystemClock, "steady", lambda clock: 0)
    monkeypatch.setattr(SystemClock, "wall", lambda clock: wall[0])
    line = Timeline(SystemClock())
    now = line.now()
    assert line.stepped(now) == 0
    wall[0] += 3600 * SECOND + 1000
    assert [line.stepped(now + after) for after in (999, 1000, 1000)] == [0, 3600 * SECOND, 3600 * SECOND]


@pytest.mark.parametrize("drift", [0, 1, -1, TOLERANCE, -TOLERANCE])
def test_a_little_drift_is_no_step(drift: int) -> None:
    assert step(wall=1_000 + drift, now=1_000, skew=0) == 0
    assert step(wall=1_000 + 60 * SECOND + drift, now=1_000, skew=60 * SECOND) == 0


@pytest.mark.parametrize("change", [TOLERANCE + 1, -TOLERANCE - 1, 3600 * SECOND])
def test_more_than_a_little_is_a_step(change: int) -> None:
    assert step(wall=1_000 + change, now=1_000, skew=0) == change


def test_moments_and_microseconds_are_exact_both_ways() -> None:
    for micros in (0, 1, -1, LATEST, to_micros(EPOCH), 1_767_225_600_123_457):
        assert to_micros(to_datetime(micros)) == micros


def test_what_lies_outside_the_calendar_is_shown_at_its_end() -> None:
    assert to_datetime(LATEST + SECOND) == to_datetime(LATEST)
    assert to_datetime(-(1 << 62)).year == 1


def test_the_machines_clock_runs_in_microseconds() -> None:
    clock = SystemClock()
    assert abs(clock.wall() - time.time_ns() // 1000) < 5 * SECOND
    assert abs(clock.steady() - time.monotonic_ns() // 1000) < 5 * SECOND


def test_ids_are_time_ordered_uuids_of_version_7() -> None:
    made = [ids.new_id() for _ in range(10_000)]
    assert made == sorted(set(made))
    for one in (made[0], made[-1]):
        assert (len(one), one[14], one[19] in "89ab") == (36, "7", True)
        assert [at for at, letter in enumerate(one) if letter == "-"] == [8, 13, 18, 23]
    millis = int(made[0].replace("-", "")[:12], 16)
    assert abs(millis - time.time_ns() // 1_000_000) < 60_000


def test_a_forked_child_makes_ids_of_its_own() -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, "\n".join(ids.new_id() for _ in range(100)).encode())
        os._exit(0)
    os.close(writer)
    mine = {ids.new_id() for _ in range(100)}
    with os.fdopen(reader) as pipe:
        theirs = set(pipe.read().split("\n"))
    os.waitpid(child, 0)
    assert len(theirs) == 100
    assert not mine & theirs


def test_what_a_child_does_after_a_fork_leaves_ids_in_order() -> None:
    before = ids.new_id()
    ids._reset()
    assert ids.new_id() > before


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise SystemExit("even this")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (None, None),
        ("plain", "plain"),
        ("", ""),
        (ValueError("why"), "ValueError: why"),
        (KeyError(), "KeyError: "),
        ("a\0b\ud800c", "a\\x00b\\ud800c"),
        (Unspeakable(), "Unspeakable: (its message cannot be shown: SystemExit)"),
    ],
)
def test_any_error_becomes_text_that_any_store_keeps(error: BaseException | str | None, said: str | None) -> None:
    assert text.describe(error) == said


@pytest.mark.parametrize("letter", ["x", "\0", "\ud800", "😀"])
def test_a_long_text_is_cut_and_tells_its_length(letter: str) -> None:
    kept = text.storable(letter * (text.LONGEST + 1))
    assert kept.endswith("… (cut: 8,193 characters in all)")
    assert len(kept) <= text.LONGEST + 40
    kept.encode()


def test_a_text_that_only_grows_too_long_by_escaping_is_cut_as_well() -> None:
    kept = text.storable("\0" * text.LONGEST)
    assert kept.endswith("… (cut: 8,192 characters in all)")


@pytest.mark.parametrize("value", [0, 11, True, 1.0, "1", None])
def test_a_whole_number_in_its_range_or_an_error_that_names_it(value: Any) -> None:
    assert check.whole("size", 10, 1, 10) == 10
    with pytest.raises(ConfigError, match=r"^size: .* is not a whole number from 1 to 10$"):
        check.whole("size", value, 1, 10)


@pytest.mark.parametrize("value", [-1, -1e-9, float("nan"), float("inf"), True, "5", None, 1e300, 10**400, -(10**400)])
def test_a_duration_is_a_finite_number_of_seconds_or_an_error_that_names_it(value: Any) -> None:
    assert check.duration("wait", 1.5) == 1_500_000
    assert check.duration("wait", check.LONGEST) == check.LONGEST * SECOND
    with pytest.raises(ConfigError, match=r"^wait: "):
        check.duration("wait", value)


def test_a_duration_may_have_to_be_more_than_nothing() -> None:
    assert check.duration("wait", 0) == 0
    assert check.duration("wait", 0.000001, zero=False) == 1
    for value in (0, 1e-9):
        with pytest.raises(ConfigError, match=r"0\.000001"):
            check.duration("wait", value, zero=False)


def test_a_flag_is_true_or_false() -> None:
    assert check.flag("on", True) is True
    with pytest.raises(ConfigError, match=r"^on: 1 "):
        check.flag("on", 1)


@pytest.mark.parametrize("value", ["", "1a", "a-b", "a b", "ä", "a\n", "a" * 64, 5, None])
def test_a_name_is_an_identifier(value: Any) -> None:
    assert check.identifier("queue", "_a1" + "x" * 60)
    with pytest.raises(ConfigError, match=r"^queue: "):
        check.identifier("queue", value)


def test_a_misspelt_setting_is_answered_with_the_right_one() -> None:
    with pytest.raises(ConfigError, match=r"capasity: no such setting \(did you mean capacity\?\)"):
        connect("memory://", capasity=5)
    with pytest.raises(ConfigError, match=r"synchronus: no such setting \(did you mean synchronous\?\)"):
        connect("sqlite:///jobs.db?synchronus=normal")


@pytest.mark.parametrize("settle", ["ack", "nack", "release", "bury", "cancel", "extend"])
def test_settling_what_a_dequeue_in_vain_returned_is_told_in_words(settle: str) -> None:
    queue = connect("memory://")
    arguments = (5.0,) if settle == "extend" else ()
    with pytest.raises(ConfigError, match="the job that dequeue returned, not NoneType"):
        getattr(queue, settle)(queue.dequeue(timeout=0), *arguments)


def test_a_postgresql_url_that_cannot_be_read_shows_no_password() -> None:
    with pytest.raises(ConfigError, match="cannot be read") as told:
        connect("postgresql://me:secret pass@host/db")
    assert "secret" not in str(told.value)
