"""From the caller's job to a record: what the contract's table of bad input cannot see."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from headrace import InvalidJob, Job
from headrace.admit import admit
from headrace.clock import SECOND, to_datetime, to_micros
from headrace.settings import Settings
from headrace.testing.suite.bad_input import BAD

NOW = to_micros(datetime(2026, 1, 1, tzinfo=UTC))
SETTINGS = Settings.make(max_attempts=3, max_payload=10)
HOUR = 3600 * SECOND


def test_a_plain_job_is_due_now_with_the_queues_attempts() -> None:
    record = admit(Job(b"x", id="a"), SETTINGS, NOW, 0)
    assert (record.due, record.run_at, record.enqueued, record.attempt, record.max_attempts) == (NOW, NOW, NOW, 0, 3)
    assert not record.absolute


def test_a_delay_is_measured_on_the_queues_line_and_run_at_by_the_calendar() -> None:
    delayed = admit(Job(id="a", delay=1.5), SETTINGS, NOW, HOUR)
    assert (delayed.due, delayed.absolute) == (NOW + 1_500_000, False)
    moment = to_datetime(NOW + 3 * HOUR)
    at = admit(Job(id="a", run_at=moment), SETTINGS, NOW, HOUR)
    assert (at.due, at.absolute) == (NOW + 2 * HOUR, True)


def test_a_job_that_says_nothing_waits_as_long_as_its_queue_says() -> None:
    slow = Settings.make(default_delay=2.5)
    assert admit(Job(id="a"), slow, NOW, HOUR).due == NOW + 2_500_000
    assert admit(Job(id="a", delay=1.0), slow, NOW, HOUR).due == NOW + SECOND
    assert admit(Job(id="a", run_at=to_datetime(NOW)), slow, NOW, 0).due == NOW


def test_a_past_moment_is_now_and_an_enqueue_time_to_come_is_now_too() -> None:
    record = admit(Job(id="a", run_at=to_datetime(NOW - 1), enqueued_at=to_datetime(NOW + 1)), SETTINGS, NOW, 0)
    assert (record.due, record.enqueued) == (NOW, NOW)


def test_an_earlier_life_is_forgotten_but_for_the_first_enqueue_time() -> None:
    old = Job(id="a", attempt=7, fence=5, token=9, cancelled=True, last_error="x", enqueued_at=to_datetime(NOW - HOUR))
    record = admit(old, SETTINGS, NOW, 0)
    assert (record.attempt, record.fence, record.cancelled, record.last_error) == (0, 0, False, None)
    assert record.enqueued == NOW - HOUR


def test_moments_outside_the_calendar_of_utc_are_refused_or_harmless() -> None:
    late = datetime.max.replace(tzinfo=timezone(-timedelta(hours=14)))
    with pytest.raises(InvalidJob, match="deadline"):
        admit(Job(id="a", deadline=late), SETTINGS, NOW, 0)


class Odd(datetime):
    """A datetime whose zone cannot say its offset."""

    def utcoffset(self) -> timedelta | None:
        raise OverflowError("date value out of range")


def test_a_zone_that_overflows_is_refused_and_not_passed_on() -> None:
    with pytest.raises(InvalidJob, match="run_at"):
        admit(Job(id="a", run_at=Odd(9999, 12, 31, tzinfo=UTC)), SETTINGS, NOW, 0)


@pytest.mark.parametrize(("what", "given"), BAD)
def test_what_no_queue_takes_is_refused_here(what: str, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidJob, match=what):
        admit(Job(**{"id": "bad", **given}), Settings.make(max_payload=1000), NOW, 0)


def test_what_is_no_job_is_refused() -> None:
    with pytest.raises(InvalidJob, match="not str"):
        admit("a job", SETTINGS, NOW, 0)  # type: ignore[arg-type]  # the point of the test


def test_the_error_names_a_job_without_repeating_a_huge_id() -> None:
    with pytest.raises(InvalidJob) as caught:
        admit(Job(id="x" * 100_000), SETTINGS, NOW, 0)
    assert len(str(caught.value)) < 200


def test_an_id_beyond_ascii_is_kept_as_it_is() -> None:
    assert admit(Job(id="日本-é"), SETTINGS, NOW, 0).id == "日本-é"
