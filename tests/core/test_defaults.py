"""What a queue does with jobs that do not say when: its default delay and its default deadline."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace import ConfigError, Job, Queue
from headrace.admit import admit
from headrace.clock import LATEST, SECOND, to_datetime
from headrace.settings import Settings
from headrace.testing import VirtualClock

Open = Callable[..., Queue]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture(params=["memory", "sqlite"])
def open_queue(request: pytest.FixtureRequest, tmp_path: Path, clock: VirtualClock) -> Open:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'jobs.db'}"

    def open_one(**settings: Any) -> Queue:
        queue = headrace.connect(url, clock=clock, **settings)
        request.addfinalizer(queue.close)
        return queue

    return open_one


def now(clock: VirtualClock) -> Any:
    return to_datetime(clock.wall())


def test_a_job_that_says_nothing_waits_for_the_default_delay(open_queue: Open, clock: VirtualClock) -> None:
    queue = open_queue(default_delay=5.0)
    queue.enqueue(Job(id="a"))
    clock.advance(4.999999)
    assert queue.dequeue(0) is None
    clock.advance(0.000001)
    assert queue.dequeue(0) is not None


@pytest.mark.parametrize("what", ["delay", "run_at"])
def test_a_job_that_says_when_is_taken_at_its_word(open_queue: Open, clock: VirtualClock, what: str) -> None:
    queue = open_queue(default_delay=5.0)
    queue.enqueue(Job(delay=1.0) if what == "delay" else Job(run_at=now(clock)))
    clock.advance(1.0)
    assert queue.dequeue(0) is not None


def test_a_retry_and_a_replay_do_not_wait_for_the_default_delay(open_queue: Open, clock: VirtualClock) -> None:
    queue = open_queue(default_delay=5.0, max_attempts=2)
    queue.enqueue(Job(id="a"))
    clock.advance(5.0)
    for _ in range(2):
        job = queue.dequeue(0)
        assert job is not None
        queue.nack(job)
    assert queue.replay() == 1
    assert queue.dequeue(0) is not None


@pytest.mark.parametrize("dead", [True, False])
def test_a_job_that_waits_past_the_default_deadline_is_not_run(
    open_queue: Open, clock: VirtualClock, dead: bool
) -> None:
    queue = open_queue(default_deadline=2.0, deadline_to_dead=dead)
    queue.enqueue(Job())
    clock.advance(2.000001)
    assert queue.dequeue(0) is None
    stats = queue.stats()
    assert (stats.deadline_missed, stats.dead, stats.dropped) == (1, int(dead), int(not dead))
    assert stats.unaccounted == 0


def test_at_the_very_deadline_it_still_starts(open_queue: Open, clock: VirtualClock) -> None:
    queue = open_queue(default_deadline=2.0)
    queue.enqueue(Job())
    clock.advance(2.0)
    assert queue.dequeue(0) is not None


def test_the_default_deadline_counts_from_when_the_job_may_first_start(open_queue: Open, clock: VirtualClock) -> None:
    queue = open_queue(default_delay=3.0, default_deadline=2.0)
    queue.enqueue_many([Job(id="default"), Job(id="own", delay=60.0)])
    clock.advance(3.0)
    first = queue.dequeue(0)
    assert first is not None
    assert first.deadline == now(clock) + timedelta(seconds=2)
    clock.advance(57.0)
    second = queue.dequeue(0)
    assert second is not None
    assert second.deadline == now(clock) + timedelta(seconds=2)


def test_a_deadline_of_its_own_stands(open_queue: Open, clock: VirtualClock) -> None:
    queue = open_queue(default_deadline=2.0)
    own = now(clock) + timedelta(hours=1)
    queue.enqueue(Job(deadline=own))
    clock.advance(1800.0)
    job = queue.dequeue(0)
    assert job is not None
    assert job.deadline == own


def test_a_step_of_the_calendar_is_part_of_the_deadline() -> None:
    record = admit(Job(), Settings.make(default_deadline=2.0), 100 * SECOND, 7 * SECOND)
    assert record.deadline == 109 * SECOND


def test_a_deadline_beyond_the_calendar_ends_with_it() -> None:
    settings = Settings.make(default_deadline=100 * 365 * 86_400.0)
    assert admit(Job(run_at=to_datetime(LATEST)), settings, 0, 0).deadline == LATEST


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("default_delay", -1.0),
        ("default_delay", None),
        ("default_delay", float("nan")),
        ("default_deadline", 0.0),
        ("default_deadline", -1.0),
        ("default_deadline", "2"),
        ("default_deadline", float("inf")),
    ],
)
def test_a_default_that_makes_no_sense_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"{name}: .* is not a number of seconds from 0"):
        headrace.connect("memory://", **{name: value})
