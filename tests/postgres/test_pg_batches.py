"""Batches, however large and however mixed, come in as their jobs would one by one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from headrace import DuplicateJob, Job, Queue, connect
from headrace.clock import to_datetime
from headrace.postgres.entrance import PART
from headrace.testing import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def queue(dsn: str, clock: VirtualClock) -> Iterator[Queue]:
    with connect(dsn, clock=clock, capacity=1_000_000) as queue:
        yield queue


def test_a_batch_of_several_parts_stands_in_line_in_its_order(queue: Queue) -> None:
    jobs = [Job(id=str(number), payload=b"%d" % number, priority=number % 3) for number in range(2 * PART + 1)]
    queue.enqueue_many(jobs)
    assert queue.stats().ready == len(jobs)
    taken = queue.dequeue_many(len(jobs), 0)
    assert [(job.id, job.payload) for job in taken] == [
        (job.id, job.payload) for job in sorted(jobs, key=lambda job: -job.priority)
    ]
    queue.ack_many(taken)
    assert queue.stats().acked == len(jobs)


@pytest.mark.parametrize("place", [0, PART, 2 * PART])
def test_a_duplicate_in_any_part_keeps_all_of_them_out(queue: Queue, place: int) -> None:
    queue.enqueue(Job(id="there"))
    jobs = [Job(id="there") if number == place else Job() for number in range(2 * PART + 1)]
    with pytest.raises(DuplicateJob, match="there"):
        queue.enqueue_many(jobs)
    stats = queue.stats()
    assert (stats.enqueued, stats.ready, stats.unaccounted) == (1, 1, 0)


@pytest.mark.parametrize("default_deadline", [None, 600.0])
def test_what_one_job_of_a_batch_says_is_its_own(dsn: str, clock: VirtualClock, default_deadline: float | None) -> None:
    now = to_datetime(clock.wall())
    kinds = [
        {"priority": 5},
        {"max_attempts": 1},
        {"delay": 9.0},
        {"run_at": now + timedelta(hours=1)},
        {"run_at": now - timedelta(hours=1)},
        {"deadline": now + timedelta(hours=2)},
        {"enqueued_at": now - timedelta(hours=3)},
        {"enqueued_at": now + timedelta(hours=3)},
        {"delay": 9.0, "deadline": now + timedelta(hours=2), "enqueued_at": now - timedelta(hours=3)},
    ]
    batches = [[{}, kind, {}] for kind in kinds] + [[kind, kind] for kind in kinds] + [kinds, [kinds[0], {}], [{}, {}]]
    settings = {"clock": clock, "default_deadline": default_deadline}
    with connect(dsn, queue="batches", **settings) as together, connect(dsn, queue="singly", **settings) as singly:
        for number, batch in enumerate(batches):
            jobs = [Job(id=f"{number}-{place}", payload=b"%d" % place, **kind) for place, kind in enumerate(batch)]
            together.enqueue_many(jobs)
            for job in jobs:
                singly.enqueue(job)
                assert seen(together, job.id) == seen(singly, job.id), (batch, job.id)


def seen(queue: Queue, id: str) -> dict[str, object]:
    job = queue.find(id)
    assert job is not None
    fields = ("payload", "priority", "run_at", "deadline", "max_attempts", "state", "enqueued_at")
    return {name: getattr(job, name) for name in fields}
