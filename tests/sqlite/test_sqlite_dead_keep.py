"""Dead letters that are not kept for ever."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace import ConfigError, Job, Queue, connect
from headrace.testing import VirtualClock
from headrace.testing.clock import wait_until


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def kept(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    try:
        return [row[0] for row in connection.execute("SELECT id FROM headrace_dead ORDER BY id")]
    finally:
        connection.close()


def buried(queue: Queue, *ids: str) -> None:
    queue.enqueue_many([Job(id=id) for id in ids])
    for job in queue.dequeue_many(len(ids), 0):
        queue.bury(job, "enough")


CALLS: list[Callable[[Queue], Any]] = [
    lambda queue: queue.dequeue(0),
    lambda queue: queue.stats(),
    lambda queue: queue.dead(),
    lambda queue: queue.enqueue(Job()),
    lambda queue: queue.take_dead(0),
]


@pytest.mark.parametrize("call", CALLS, ids=["dequeue", "stats", "dead", "enqueue", "take_dead"])
def test_every_call_throws_away_dead_letters_at_their_age_and_counts_them_as_dropped(
    call: Callable[[Queue], Any], path: Path, opened: Any, clock: VirtualClock
) -> None:
    with opened(clock=clock, dead_keep=60) as queue, opened(clock=clock, queue="other") as other:
        buried(other, "theirs")
        buried(queue, "a", "b", "c")
        clock.advance(30)
        buried(queue, "d")
        clock.advance(29.999999)
        call(queue)
        assert kept(path) == ["a", "b", "c", "d", "theirs"]
        clock.advance(0.000001)
        call(queue)
        assert kept(path) == ["d", "theirs"]
        stats = queue.stats()
        assert (stats.dead, stats.dropped, stats.dead_dropped, stats.unaccounted) == (1, 3, 0, 0)
        assert (other.stats().dead, other.stats().unaccounted) == (1, 0)


def test_one_call_throws_away_a_batch_and_the_next_goes_on(
    path: Path, opened: Any, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.sqlite.step.PRUNE", 2)
    with opened(clock=clock, dead_keep=60) as queue:
        buried(queue, "a", "b", "c")
        clock.advance(60)
        assert queue.stats().dead == 1
        assert queue.stats().dead == 0


def test_a_worker_that_only_waits_throws_them_away_too(path: Path, opened: Any, clock: VirtualClock) -> None:
    with opened(clock=clock, dead_keep=60) as queue:
        buried(queue, "a")
        waiting = threading.Thread(target=queue.dequeue)
        waiting.start()
        wait_until(lambda: bool(queue.store.rooms.consumers.tickets))
        clock.advance(60)
        wait_until(lambda: kept(path) == [])
        queue.enqueue(Job())
        waiting.join()


def test_what_another_handle_buried_goes_at_its_age_too(path: Path, opened: Any, clock: VirtualClock) -> None:
    with opened(clock=clock, dead_keep=60) as queue, opened(clock=clock) as other:
        assert queue.stats().dead == 0
        clock.advance(20)
        buried(other, "a")
        clock.advance(60)
        assert other.stats().dead == 1
        assert queue.stats().dead == 0


@pytest.mark.parametrize("keep", [None, 0])
def test_dead_letters_stay_where_no_age_is_given(
    path: Path, opened: Any, clock: VirtualClock, keep: float | None
) -> None:
    with opened(clock=clock, dead_keep=keep) as queue:
        buried(queue, "a")
        clock.advance(10 * 365 * 86_400)
        assert queue.stats().dead == 1


def test_the_age_is_checked_and_may_stand_in_the_url(path: Path) -> None:
    for wrong in (-1, "soon", float("nan"), True):
        with pytest.raises(ConfigError, match="dead_keep: "):
            connect(f"sqlite:///{path}", dead_keep=wrong)
    connect(f"sqlite:///{path}?dead_keep=3600").close()
    with pytest.raises(ConfigError, match="dead_keep: no such setting"):
        connect("memory://", dead_keep=60)
