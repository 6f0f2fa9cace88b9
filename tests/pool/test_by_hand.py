"""A handler may settle its job itself, in a transaction of its own: the pool asks whether that holds, and adds nothing.

Here the queue's own ``ack`` is that transaction: done means committed, not done means rolled back.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from pool_kit import memory

from headrace import Job, Pool, Retry
from headrace.pool import current
from headrace.pool.context import by_hand
from headrace.pool.retry import Constant
from headrace.pool.settle import ACK, NOTHING, ROLLED_BACK, Action, ByHand, Nack, Release, settled_by_hand
from headrace.testing.clock import VirtualClock, run_virtual

JOB = Job(id="a", attempt=2)
POLICY = Constant(base=7, jitter="none")


@pytest.mark.parametrize(
    ("action", "instead"),
    [
        (ACK, ByHand("acked", Nack(7, ROLLED_BACK))),
        (Nack(1, "no"), ByHand("acked", Nack(1, "no"))),
        (Release(), ByHand("acked", Release())),
        (NOTHING, NOTHING),
    ],
)
def test_what_a_pool_would_do_it_does_only_where_the_transaction_was_rolled_back(
    action: Action, instead: Action
) -> None:
    assert settled_by_hand(JOB, "acked", action, POLICY) == instead


def worked(queue: Any, handler: Any) -> Any:
    queue.close()
    clock = queue.settings.clock
    return run_virtual(Pool(queue, handler, workers=3, retry=lambda attempt: 0.0).run_async(), clock)


@pytest.mark.parametrize("pause", [0.0, 1.0])
def test_a_job_that_its_handler_has_settled_is_left_alone(pause: float, caplog: pytest.LogCaptureFixture) -> None:
    queue = memory(clock=VirtualClock())
    queue.enqueue_many(Job(id=f"{number}") for number in range(4))

    async def handler(job: Job) -> None:
        if pause:
            await asyncio.sleep(pause)
        if job.id != "3":
            queue.nack(job, error="by hand") if job.id == "2" and job.attempt == 1 else queue.ack(job)
            current().settled(job, "nacked" if job.id == "2" and job.attempt == 1 else "acked")

    with caplog.at_level(logging.WARNING):
        summary = worked(queue, handler)
    assert (summary.acked, summary.nacked, summary.lost) == (4, 1, 0)
    stats = queue.stats()
    assert (stats.acked, stats.retried, stats.ack_too_late, stats.unaccounted) == (4, 1, 0, 0)
    assert caplog.text == ""
    assert not by_hand


@pytest.mark.parametrize("pause", [0.0, 1.0])
def test_a_job_whose_transaction_was_rolled_back_runs_again(pause: float, caplog: pytest.LogCaptureFixture) -> None:
    queue = memory(clock=VirtualClock())
    queue.enqueue(Job(id="a"))
    errors: list[str | None] = []

    async def handler(job: Job) -> None:
        errors.append(job.last_error)
        if pause:
            await asyncio.sleep(pause)
        if job.attempt == 2:
            queue.ack(job)
        current().settled(job, "acked")

    with caplog.at_level(logging.WARNING):
        summary = worked(queue, handler)
    assert (summary.acked, summary.nacked) == (1, 1)
    assert errors == [None, ROLLED_BACK]
    assert ROLLED_BACK in caplog.text


def test_what_a_handler_raises_counts_only_where_its_transaction_was_rolled_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue = memory(clock=VirtualClock())
    queue.enqueue_many([Job(id="committed"), Job(id="rolled back")])
    attempts: list[tuple[str, int]] = []

    def handler(job: Job) -> None:
        attempts.append((job.id, job.attempt))
        if job.id == "committed" or job.attempt == 2:
            queue.ack(job)
        current().settled(job, "acked")
        if job.attempt == 1:
            raise ValueError("afterwards") if job.id == "committed" else Retry(delay=0.0)

    with caplog.at_level(logging.WARNING):
        summary = worked(queue, handler)
    assert sorted(attempts) == [("committed", 1), ("rolled back", 1), ("rolled back", 2)]
    assert (summary.acked, summary.nacked, summary.lost) == (2, 1, 0)
    assert "after it was settled by its handler" in caplog.text
    assert "afterwards" in caplog.text


def test_a_handler_may_go_on_after_its_commit_for_as_long_as_it_likes() -> None:
    queue = memory(clock=VirtualClock(), lease=30.0)
    queue.enqueue(Job(id="a"))
    ends: list[bool] = []

    async def handler(job: Job) -> None:
        queue.ack(job)
        current().settled(job, "acked")
        await asyncio.sleep(100.0)
        ends.append(current().cancelled)

    summary = worked(queue, handler)
    assert ends == [False]
    assert (summary.acked, summary.lost) == (1, 0)


def test_another_job_that_a_handler_settles_is_not_its_own() -> None:
    queue, other = memory(clock=VirtualClock()), memory(clock=VirtualClock())
    queue.enqueue(Job(id="a"))
    other.enqueue(Job(id="a"))

    async def handler(job: Job) -> None:
        (theirs,) = other.dequeue_many(1, timeout=0)
        other.release(theirs)
        (theirs,) = other.dequeue_many(1, timeout=0)
        current().settled(theirs, "acked")

    worked(queue, handler)
    assert queue.stats().acked == 1
