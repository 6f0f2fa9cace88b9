"""F12 on a file: a caller that is cancelled, at whatever moment, has no job, and the job has its attempt back."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest
import raw
from sqlite_files import drain, lease, open_at

from headrace.job import Job

ROUNDS = 500


async def test_a_dequeue_cancelled_at_any_stage_gives_the_job_and_its_attempt_back(path: Path) -> None:
    """Each round goes a little further before it cancels: not begun, on its way, in the thread, on the way back."""
    cancelled = 0
    async with open_at(path).as_async as queue:
        await queue.enqueue(Job(id="a"))
        for number in range(ROUNDS):
            poll = asyncio.create_task(queue.dequeue(timeout=30))
            for _ in range(number % 125):
                await asyncio.sleep(0)
            if number % 10 == 9:
                await asyncio.wait([poll])  # came too late
            poll.cancel()
            try:
                job = await poll
            except asyncio.CancelledError:
                cancelled += 1
                job = await queue.dequeue(timeout=5)
            assert job is not None, "the cancelled caller kept the job"
            assert job.attempt == 1, "the cancelled caller burnt an attempt"
            await queue.release(job)
        stats = await queue.stats()
    assert (stats.ready, stats.expired_leases, stats.ack_too_late) == (1, 0, 0)
    assert ROUNDS // 50 < cancelled <= ROUNDS * 9 // 10


async def test_a_batch_that_was_cancelled_goes_back_whole_and_in_its_place(path: Path) -> None:
    async with open_at(path).as_async as queue:
        await queue.enqueue_many([Job(id=f"job{n}") for n in range(10)])
        for number in range(50):
            poll = asyncio.create_task(queue.dequeue_many(10, timeout=30))
            for _ in range(number):
                await asyncio.sleep(0)
            poll.cancel()
            jobs = (await asyncio.gather(poll, return_exceptions=True))[0]
            if isinstance(jobs, BaseException):
                jobs = []
                while len(jobs) < 10:
                    jobs += await queue.dequeue_many(10, timeout=5)
            assert sorted(job.id for job in jobs) == [f"job{n}" for n in range(10)]
            assert {job.attempt for job in jobs} == {1}
            for job in jobs:
                await queue.release(job)


def test_a_dequeue_cancelled_at_the_end_of_its_loop_gives_the_job_back(path: Path) -> None:
    """The step is still waiting for somebody's lock when the loop is closed; nobody is left to be told."""

    async def main() -> None:
        poll = asyncio.create_task(queue.as_async.dequeue(timeout=30))
        await asyncio.sleep(0.02)
        poll.cancel()
        with pytest.raises(asyncio.CancelledError):
            await poll

    with open_at(path) as queue:
        queue.enqueue(Job(id="a"))
        with closing(raw.connect(path)) as other:
            other.execute("BEGIN IMMEDIATE")
            asyncio.run(main())
            other.execute("ROLLBACK")
        assert lease(queue, timeout=5).attempt == 1


async def test_a_cancelled_enqueue_left_a_whole_job_or_none(path: Path) -> None:
    async with open_at(path).as_async as queue:
        for number in range(60):
            call = asyncio.create_task(queue.enqueue_many([Job(id=f"{number}-{n}") for n in range(3)]))
            for _ in range(number):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.wait([call])
        assert (await queue.stats()).ready % 3 == 0
    rows = raw.picture(path).rows
    assert {sum(row.id.startswith(f"{number}-") for row in rows) for number in range(60)} <= {0, 3}


async def test_a_waiting_task_does_not_keep_the_loop_from_others(path: Path) -> None:
    """I5: twenty waiters, one thread, no connection held by any of them."""
    async with open_at(path).as_async as queue:
        waiters = [asyncio.create_task(queue.dequeue(timeout=30)) for _ in range(20)]
        await asyncio.sleep(0)
        with closing(raw.connect(path)) as other:
            other.execute("BEGIN IMMEDIATE")  # nobody of them holds a lock while waiting
            other.execute("ROLLBACK")
        await queue.enqueue_many([Job() for _ in range(20)])
        async with asyncio.timeout(10):
            jobs = await asyncio.gather(*waiters)
        await queue.ack_many([job for job in jobs if job is not None])
        assert (await queue.stats()).acked == 20


async def test_two_loops_one_after_the_other_use_one_handle(path: Path) -> None:
    queue = open_at(path)

    async def once(name: str) -> None:
        await queue.as_async.enqueue(Job(id=name))

    await asyncio.to_thread(lambda: asyncio.run(once("first")))
    await once("second")
    assert [job.id for job in drain(queue)] == ["first", "second"]
    await queue.as_async.close()
