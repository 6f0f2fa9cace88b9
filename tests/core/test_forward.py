"""A leased job goes on to another queue of its store in one step: never in both, never in none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace import (
    ConfigError,
    InvalidJob,
    Job,
    LeaseLost,
    QueueClosed,
    QueueFull,
    Unsupported,
)
from headrace.clock import to_datetime
from headrace.job import State
from headrace.testing import VirtualClock
from headrace.testing.clock import wait_until

Open = Callable[..., Any]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture(params=["memory", "sqlite"])
def open_queue(request: pytest.FixtureRequest, tmp_path: Path, clock: VirtualClock) -> Open:
    """Queues of one store, by name."""
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'jobs.db'}"

    def open_one(name: str, **settings: Any) -> Any:
        queue = headrace.connect(url, queue=name, clock=clock, **settings)
        request.addfinalizer(queue.close)
        return queue

    return open_one


def leased(queue: Any, **given: Any) -> Job:
    queue.enqueue(Job(**{"payload": b"x", "id": "a", **given}))
    job = queue.dequeue(0)
    assert job is not None
    return job


def test_it_is_done_here_and_ready_there_and_both_books_balance(open_queue: Open) -> None:
    here, there = open_queue("here"), open_queue("there")
    here.forward(leased(here), there)
    left, arrived = here.stats(), there.stats()
    assert (left.size, left.acked, left.unaccounted) == (0, 1, 0)
    assert (arrived.ready, arrived.enqueued, arrived.unaccounted) == (1, 1, 0)


def test_what_is_the_callers_goes_along_and_the_attempts_begin_anew(open_queue: Open, clock: VirtualClock) -> None:
    here, there = open_queue("here"), open_queue("there")
    deadline = to_datetime(clock.wall()) + timedelta(hours=1)
    job = leased(here, priority=7, deadline=deadline, max_attempts=2)
    clock.advance(3.0)
    here.forward(job, there)
    arrived = there.dequeue(0)
    assert (arrived.id, arrived.payload, arrived.priority, arrived.deadline) == ("a", b"x", 7, deadline)
    assert (arrived.queue, arrived.attempt, arrived.max_attempts) == ("there", 1, 2)
    assert arrived.enqueued_at == job.enqueued_at


def test_delay_and_deadline_are_the_targets_where_the_job_has_none(open_queue: Open, clock: VirtualClock) -> None:
    here, there = open_queue("here"), open_queue("there", default_delay=5.0, default_deadline=2.0)
    here.forward(leased(here), there)
    assert there.stats().delayed == 1
    clock.advance(5.0)
    arrived = there.dequeue(0)
    assert arrived.deadline == to_datetime(clock.wall()) + timedelta(seconds=2)


def test_a_lost_lease_forwards_nothing(open_queue: Open, clock: VirtualClock) -> None:
    here, there = open_queue("here", lease=1.0), open_queue("there")
    job = leased(here)
    clock.advance(1.0)
    second = here.dequeue(0)
    with pytest.raises(LeaseLost):
        here.forward(job, there)
    assert (here.stats().ack_too_late, there.stats().enqueued) == (1, 0)
    here.forward(second, there)
    assert there.stats().ready == 1


def test_a_full_target_changes_nothing_on_either_side(open_queue: Open) -> None:
    here, there = open_queue("here"), open_queue("there", capacity=1, overflow="block")
    there.enqueue(Job(id="first"))
    job = leased(here)
    with pytest.raises(QueueFull):
        here.forward(job, there)
    assert (here.stats().inflight, there.stats().enqueued) == (1, 1)
    here.ack(job)


def test_a_target_that_drops_to_make_room_counts_what_it_dropped(open_queue: Open) -> None:
    here, there = open_queue("here"), open_queue("there", capacity=1, overflow="drop_oldest")
    there.enqueue(Job(id="first"))
    here.forward(leased(here), there)
    stats = there.stats()
    assert (stats.ready, stats.dropped, stats.unaccounted) == (1, 1, 0)
    assert there.find("first") is None


def test_a_target_that_takes_only_smaller_payloads_refuses_and_the_job_stays(open_queue: Open) -> None:
    here, there = open_queue("here"), open_queue("there", max_payload=2)
    job = leased(here, payload=b"long")
    with pytest.raises(InvalidJob, match="max_payload"):
        here.forward(job, there)
    here.ack(job)


def test_an_id_that_is_unfinished_there_is_only_done_here(open_queue: Open) -> None:
    here, there = open_queue("here"), open_queue("there")
    there.enqueue(Job(b"the first", id="a"))
    here.forward(leased(here), there)
    assert (here.stats().acked, there.stats().enqueued) == (1, 1)
    assert there.dequeue(0).payload == b"the first"


def test_a_job_that_somebody_cancelled_does_not_live_on_elsewhere(open_queue: Open) -> None:
    here, there = open_queue("here"), open_queue("there")
    job = leased(here)
    here.cancel("a")
    here.forward(job, there)
    assert (here.stats().cancelled, here.stats().unaccounted, there.stats().enqueued) == (1, 0, 0)


def test_what_is_due_there_moves_first(open_queue: Open, clock: VirtualClock) -> None:
    here, there = open_queue("here"), open_queue("there", capacity=1, dead_capacity=1)
    there.enqueue(Job(id="old", max_attempts=1))
    there.dequeue(0)
    clock.advance(30.0)  # its lease is over: it is dead, and its place is free
    here.forward(leased(here), there)
    assert (there.stats().ready, there.stats().dead) == (1, 1)


def test_a_queue_is_not_its_own_target(open_queue: Open) -> None:
    here = open_queue("here")
    job = leased(here)
    with pytest.raises(ConfigError, match="already"):
        here.forward(job, here)
    here.ack(job)


def test_a_closed_target_takes_nothing_and_a_closed_source_still_gives(open_queue: Open) -> None:
    here, there, shut = open_queue("here"), open_queue("there"), open_queue("shut")
    shut.close()
    job = leased(here)
    with pytest.raises(QueueClosed):
        here.forward(job, shut)
    here.close()
    here.forward(job, there)
    assert there.stats().ready == 1


def test_a_queue_elsewhere_is_refused_beforehand(open_queue: Open, tmp_path: Path) -> None:
    here = open_queue("here")
    job = leased(here)
    with headrace.connect(f"sqlite:///{tmp_path / 'other.db'}", queue="there") as there:
        with pytest.raises(Unsupported):
            here.forward(job, there)
        assert there.stats().enqueued == 0
    with pytest.raises(Unsupported):
        here.forward(job, object())
    here.ack(job)


def test_who_waits_over_there_is_woken(open_queue: Open) -> None:
    here, there = open_queue("here"), open_queue("there")
    job = leased(here)
    taken: list[Job | None] = []
    waiter = threading.Thread(target=lambda: taken.append(there.dequeue(20.0)))
    waiter.start()
    wait_until(lambda: bool(there.store.rooms.consumers.tickets), 20.0)
    here.forward(job, there)
    waiter.join(20)
    assert [each and each.id for each in taken] == ["a"]


async def test_async_callers_forward_to_either_face(open_queue: Open) -> None:
    here, there = open_queue("here"), open_queue("there")
    await here.as_async.forward(leased(here, id="a"), there)
    await here.as_async.forward(leased(here, id="b"), there.as_async)
    assert there.stats().ready == 2


def test_two_that_forward_to_each_other_never_wait_in_a_circle(open_queue: Open) -> None:
    left, right = open_queue("left"), open_queue("right")
    left.enqueue_many([Job(id=f"l{n}") for n in range(50)])
    right.enqueue_many([Job(id=f"r{n}") for n in range(50)])

    def move(source: Any, target: Any) -> None:
        for _ in range(50):
            source.forward(source.dequeue(0), target)

    both = [threading.Thread(target=move, args=pair) for pair in ((left, right), (right, left))]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(20)
    assert not any(thread.is_alive() for thread in both)
    stats = [left.stats(), right.stats()]
    assert (sum(each.ready for each in stats), [each.unaccounted for each in stats]) == (100, [0, 0])


def test_a_step_that_fails_half_way_is_in_neither_queue_twice(tmp_path: Path) -> None:
    """SQLite: the target's row is written and then the commit is refused."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    with headrace.connect(url, queue="here") as here, headrace.connect(url, queue="there") as there:
        job = leased(here)
        step = here.store._database
        work = step.write

        def failing(transaction: Any) -> Any:
            def then_fail(connection: Any) -> Any:
                transaction(connection)
                raise KeyboardInterrupt

            return work(then_fail)

        step.write = failing
        with pytest.raises(KeyboardInterrupt):
            here.forward(job, there)
        step.write = work
        assert (here.stats().inflight, there.stats().enqueued) == (1, 0)
        found = here.find("a")
        assert found is not None
        assert found.state is State.INFLIGHT
        asyncio.run(here.as_async.forward(job, there))
        assert there.stats().ready == 1
