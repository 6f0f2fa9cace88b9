"""How a handler ends -> what becomes of the job: every row, as a table."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from headrace.clock import SECOND, to_micros
from headrace.job import Cancel, Discard, Job, Retry, Snooze
from headrace.pool.outcome import (
    RETURNED,
    CancelAsked,
    Ended,
    Interrupted,
    LeaseGone,
    ProcessDied,
    Raised,
    Stop,
    TimedOut,
    Unserved,
    ended,
)
from headrace.pool.retry import Constant
from headrace.pool.settle import ACK, NOTHING, Action, Bury, CancelJob, Nack, Release, decide

BORN = datetime(2026, 1, 1, tzinfo=UTC)
JOB = Job(id="a", attempt=2, enqueued_at=BORN)
POLICY = Constant(base=7, jitter="none")


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def after(seconds: float) -> int:
    return to_micros(BORN) + round(seconds * SECOND)


@pytest.mark.parametrize(
    ("how", "action"),
    [
        (RETURNED, ACK),
        (LeaseGone(), NOTHING),
        (Interrupted(), Release(0.0)),
        (CancelAsked(), CancelJob("cancel requested")),
        (TimedOut(2.5), Nack(7, "timed out after 2.5 s")),
        (ProcessDied("killed by SIGKILL"), Nack(7, "killed by SIGKILL")),
        (Raised(ValueError("no")), Nack(7, "ValueError: no")),
        (Raised("KeyError: 'far away'"), Nack(7, "KeyError: 'far away'")),
        (Raised(Retry()), Nack(7, "the handler asked for a retry")),
        (Raised(Retry(delay=0)), Nack(0, "the handler asked for a retry")),
        (Raised(Retry(delay=3.5, error="busy")), Nack(3.5, "busy")),
        (Raised(Retry(delay=-1, error="busy")), Nack(7, "busy")),
        (Raised(caused(Retry(delay=1), OSError("gone"))), Nack(1, "OSError: gone")),
        (Raised(Snooze(60)), Release(60)),
        (Raised(Discard("bad address")), Bury("bad address")),
        (Raised(Cancel("too late")), CancelJob("too late")),
        (Raised(KeyError("\0")), Nack(7, "KeyError: '\\\\x00'".replace("\\\\", "\\"))),
        (Raised(ValueError("a\0b")), Nack(7, "ValueError: a\\x00b")),
        (Raised(asyncio.CancelledError()), Nack(7, "CancelledError: ")),
        (Raised(SystemExit(3)), Nack(7, "SystemExit: 3")),
        (Raised(Mute()), Nack(7, "Mute: (its message cannot be shown: ValueError)")),
        (Raised(Discard("")), Bury("str")),
    ],
)
def test_each_ending_leads_to_its_action(how: Ended, action: Action) -> None:
    assert decide(JOB, how, POLICY, after(0)) == action


@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), None, "5"])
def test_a_snooze_without_a_sound_delay_is_a_failed_attempt(delay: Any) -> None:
    action = decide(JOB, Raised(Snooze(delay)), POLICY, after(0))
    assert isinstance(action, Nack)
    assert action.delay == 7
    assert action.error.startswith("Snooze: ")


@pytest.mark.parametrize(("age", "delay"), [(-50, 1), (0, 1), (10, 1), (100, 10), (599, 30)])
def test_an_unserved_job_waits_longer_the_older_it_is(age: float, delay: float) -> None:
    assert decide(JOB, Raised(Unserved("no task 'x'")), POLICY, after(age)) == Release(delay)


def test_an_unserved_job_fails_once_the_grace_is_over() -> None:
    failed = Nack(7, "Unserved: no task 'x'")
    assert decide(JOB, Raised(Unserved("no task 'x'")), POLICY, after(600)) == failed
    assert decide(JOB, Raised(Unserved("no task 'x'")), POLICY, after(5), unserved_grace=5) == failed


def test_an_unserved_job_without_a_birthday_is_new() -> None:
    assert decide(Job(id="a", attempt=1), Raised(Unserved("x")), POLICY, after(0)) == Release(1)


def test_the_retry_policy_sees_the_attempt() -> None:
    seen: list[int] = []

    class Spy(Constant, frozen=True, kw_only=True):
        def growth(self, attempt: float) -> float:
            seen.append(int(attempt))
            return 1.0

    decide(JOB, Raised("no"), Spy(), after(0))
    assert seen == [2]


GONE = Raised(asyncio.CancelledError())


@pytest.mark.parametrize(
    ("stop", "answer", "how"),
    [
        (None, RETURNED, RETURNED),
        (None, GONE, GONE),  # raised by the handler itself: a failure like any other
        (Stop.TIMEOUT, RETURNED, TimedOut(4)),
        (Stop.TIMEOUT, GONE, TimedOut(4)),
        (Stop.LEASE, RETURNED, LeaseGone()),
        (Stop.LEASE, GONE, LeaseGone()),
        (Stop.DRAIN, RETURNED, RETURNED),
        (Stop.DRAIN, GONE, Interrupted()),
        (Stop.DRAIN, Raised("KeyboardInterrupt: "), Interrupted()),
        (Stop.DRAIN, ProcessDied("killed by SIGTERM"), Interrupted()),
        (Stop.ASKED, RETURNED, RETURNED),
        (Stop.ASKED, GONE, CancelAsked()),
        (Stop.ASKED, Raised("ValueError: "), Raised("ValueError: ")),
    ],
)
def test_an_answer_is_read_in_the_light_of_what_the_handler_was_told(
    stop: Stop | None, answer: Any, how: Ended
) -> None:
    assert ended(stop, answer, 4) == how


def test_a_handler_that_says_how_to_end_is_heard_during_shutdown_too() -> None:
    answer = Raised(Snooze(5))
    assert ended(Stop.DRAIN, answer, 4) is answer
