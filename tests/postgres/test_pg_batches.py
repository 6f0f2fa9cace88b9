"""Batches, however large and however mixed, come in as their jobs would one by one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from pg_kit import connected

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


def test_a_batch_that_is_refused_leaves_its_connection_fit_for_the_next(queue: Queue) -> None:
    queue.enqueue(Job(id="there"))
    for place in range(PART - 1, 8 * PART, PART):
        with pytest.raises(DuplicateJob, match="there"):
            queue.enqueue_many([Job(id="there") if number == place else Job() for number in range(8 * PART)])
        queue.enqueue_many([Job(), Job()])
    assert queue.stats().enqueued == 1 + 8 * 2


class Interrupted(BaseException):
    pass


def test_a_call_that_is_interrupted_between_two_parts_enqueues_none(queue: Queue) -> None:
    columns = queue.store._columns  # type: ignore[attr-defined]
    parts = 0

    def interrupting(*args: object) -> object:
        nonlocal parts
        parts += 1
        if parts == 3:
            raise Interrupted
        return columns(*args)

    queue.store._columns = interrupting  # type: ignore[attr-defined]
    with pytest.raises(Interrupted):
        queue.enqueue_many([Job() for _ in range(4 * PART)])
    assert queue.stats().enqueued == 0
    queue.enqueue_many([Job() for _ in range(4 * PART)])
    assert queue.stats().enqueued == 4 * PART


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


def test_nobody_looks_for_the_leases_of_a_claim_that_was_done_in_one_step(dsn: str, queue: Queue) -> None:
    def watched() -> list[tuple[list[int], int]]:
        with connected(dsn) as database:
            return database.execute("SELECT jobs, size FROM headrace.leases ORDER BY until, jobs").fetchall()

    queue.enqueue_many([Job() for _ in range(1_000)])
    whole, parted, renewed = (queue.dequeue_many(300, 0) for _ in range(3))
    assert sorted(size for _, size in watched()) == [300] * 6
    queue.ack_many(whole)
    assert sorted(pk for jobs, _ in watched() for pk in jobs) == sorted(job.ref for job in (*parted, *renewed))
    queue.ack_many(parted[:100])
    queue.ack_many(parted[100:])
    queue.extend_many(renewed[:1], 600.0)
    queue.ack_many(renewed)
    left = {pk for jobs, _ in watched() for pk in jobs}
    assert left == {job.ref for job in (*parted, renewed[0])}
    assert queue.stats().acked == 900
    queue.settings.clock.advance(601)  # type: ignore[attr-defined]
    assert len(queue.dequeue_many(1_000, 0)) == 100
    assert queue.stats().expired_leases == 0


def seen(queue: Queue, id: str) -> dict[str, object]:
    job = queue.find(id)
    assert job is not None
    fields = ("payload", "priority", "run_at", "deadline", "max_attempts", "state", "enqueued_at")
    return {name: getattr(job, name) for name in fields}
