"""What a running handler can learn, and how it is told to stop."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from pool_kit import Witness, memory, started

from headrace.clock import SECOND
from headrace.job import Cancel, Job
from headrace.pool import Context, Pool, current
from headrace.pool.outcome import Stop
from headrace.testing.clock import START, VirtualClock


def test_a_handler_finds_its_context_and_its_job_from_task_and_thread() -> None:
    seen: list[tuple[str, str, float | None]] = []

    def sync(job: Job) -> None:
        seen.append(("thread", current().job.id, current().time_left))

    async def asynchronous(job: Job) -> None:
        seen.append(("task", current().job.id, current().time_left))

    for handler in (sync, asynchronous):
        queue, witness = memory(clock=VirtualClock()), Witness()
        queue.enqueue(Job(id="a"))
        with started(Pool(queue, handler, listener=witness, timeout=5), witness):
            witness.until_finished(1)
    assert seen == [("thread", "a", 5.0), ("task", "a", 5.0)]


def test_outside_of_a_handler_there_is_no_context() -> None:
    with pytest.raises(RuntimeError, match="no handler is running"):
        current()


def test_a_context_knows_its_time() -> None:
    clock = VirtualClock()
    context = Context(Job(), clock)
    assert context.time_left is None
    assert context.deadline is None
    context.limit(clock.steady() + 5 * SECOND)
    clock.advance(2)
    assert context.time_left == 3
    assert context.deadline == START + timedelta(seconds=5)
    assert context.deadline > datetime(2026, 1, 1, tzinfo=UTC)
    clock.advance(9)
    assert context.time_left == 0


def test_a_graver_reason_replaces_a_lesser_one_and_never_the_reverse() -> None:
    context = Context(Job(), VirtualClock())
    assert not context.cancelled
    assert context.reason is None
    context.raise_if_cancelled()
    for told, seen in ((Stop.ASKED, "cancel requested"), (Stop.LEASE, "lease lost"), (Stop.TIMEOUT, "lease lost")):
        context.tell(told)
        assert context.reason == seen
    assert context.cancelled
    with pytest.raises(Cancel, match="lease lost"):
        context.raise_if_cancelled()


def test_a_wait_ends_when_the_handler_is_told_or_when_the_time_is_over() -> None:
    clock = VirtualClock()
    context = Context(Job(), clock)
    heard: list[bool] = []
    threads = [threading.Thread(target=lambda s=s: heard.append(context.wait_cancelled(s))) for s in (10, 100, None)]
    for thread in threads:
        thread.start()
    clock.until_waiting(3)
    clock.advance(10)
    threads[0].join(5)
    assert heard == [False]
    context.tell(Stop.ASKED)
    context.tell(Stop.TIMEOUT)
    for thread in threads:
        thread.join(5)
    assert heard == [False, True, True]
    assert context.wait_cancelled(0)
