"""Long polls: who is woken, when and in which order; and that a waiter that leaves takes no job with it."""

from __future__ import annotations

import asyncio

import pytest

from ...errors import ConfigError, QueueClosed
from ...job import Job
from ...queue import AsyncQueue
from ..bench import Bench, drain, lease


class Waiting:
    def test_no_timeout_to_wait_for_means_an_answer_at_once(self, bench: Bench) -> None:
        queue = bench.quiet()
        assert bench.result(bench.spawn(queue.dequeue, timeout=0)) is None
        assert bench.result(bench.spawn(queue.dequeue_many, 5, timeout=0.0)) == []

    def test_a_long_poll_ends_at_exactly_its_timeout(self, bench: Bench) -> None:
        queue = bench.quiet()
        (poll,) = bench.waiters(1, queue, timeout=30.0)
        bench.clock.advance(29.999999)
        bench.settle()
        assert not poll.done()
        bench.clock.advance(0.000001)
        assert bench.result(poll) is None

    def test_a_job_ends_a_long_poll_at_once(self, bench: Bench) -> None:
        queue = bench.quiet()
        (poll,) = bench.waiters(1, queue)
        moment = bench.clock.now()
        queue.enqueue(Job(id="a"))
        taken = bench.result(poll)
        assert taken is not None
        assert (taken.id, taken.enqueued_at, bench.clock.now()) == ("a", moment, moment)

    def test_a_long_poll_without_timeout_waits_for_as_long_as_it_takes(self, bench: Bench) -> None:
        queue = bench.quiet()
        poll = bench.spawn(queue.dequeue)
        bench.settle()
        bench.clock.advance(1e7)
        bench.settle()
        assert not poll.done()
        queue.enqueue(Job(id="a"))
        taken = bench.result(poll)
        assert taken is not None
        assert taken.id == "a"

    def test_a_long_poll_of_many_takes_what_came_and_waits_for_no_more(self, bench: Bench) -> None:
        queue = bench.quiet()
        poll = bench.spawn(queue.dequeue_many, 10, timeout=60.0)
        bench.clock.until_waiting(1, bench.limit)
        queue.enqueue_many([Job(id="a"), Job(id="b")])
        assert [job.id for job in bench.result(poll)] == ["a", "b"]

    @pytest.mark.parametrize("way", ["delayed", "retried", "released", "expired", "shortened"])
    def test_a_long_poll_wakes_at_the_moment_at_which_time_makes_a_job_ready(self, bench: Bench, way: str) -> None:
        queue = bench.quiet(lease=10.0 if way == "expired" else 100.0)
        queue.enqueue(Job(id="a", delay=10.0 if way == "delayed" else 0.0))
        held = lease(queue) if way != "delayed" else None
        polls = bench.waiters(3, queue)
        if held is not None and way == "retried":
            queue.nack(held, delay=10.0)
        elif held is not None and way == "released":
            queue.release(held, delay=10.0)
        elif held is not None and way == "shortened":
            queue.extend(held, 10.0)
        bench.settle()
        bench.clock.advance(9.999999)
        bench.settle()
        assert not any(poll.done() for poll in polls)
        bench.clock.advance(0.000001)
        taken = bench.result(polls[0])
        assert taken is not None
        assert taken.lease_until is not None
        assert (taken.lease_until - bench.clock.now()).total_seconds() == queue.settings.lease

    @pytest.mark.parametrize("way", ["nack", "release"])
    def test_a_job_given_back_wakes_who_waits(self, bench: Bench, way: str) -> None:
        queue = bench.quiet()
        queue.enqueue(Job(id="a"))
        held = lease(queue)
        (poll,) = bench.waiters(1, queue)
        getattr(queue, way)(held)
        taken = bench.result(poll)
        assert taken is not None
        assert taken.id == "a"

    def test_waiters_are_served_first_come_first_served(self, bench: Bench) -> None:
        queue = bench.quiet()
        polls = bench.waiters(6, queue)
        for number, poll in enumerate(polls):
            queue.enqueue(Job(id=f"{number}"))
            taken = bench.result(poll)
            assert taken is not None
            assert taken.id == f"{number}"
            assert not any(later.done() for later in polls[number + 1 :])

    def test_a_batch_wakes_as_many_as_it_feeds(self, bench: Bench) -> None:
        queue = bench.quiet()
        polls = bench.waiters(8, queue)
        queue.enqueue_many([Job(id=f"{number}") for number in range(8)])
        taken = [bench.result(poll) for poll in polls]
        assert sorted(job.id for job in taken if job) == [f"{number}" for number in range(8)]

    def test_jobs_that_fall_due_together_wake_as_many_as_they_feed(self, bench: Bench) -> None:
        queue = bench.quiet()
        queue.enqueue_many([Job(id=f"{number}", delay=5.0) for number in range(8)])
        polls = bench.waiters(8, queue)
        bench.clock.advance(5.0)
        taken = [bench.result(poll) for poll in polls]
        assert sorted(job.id for job in taken if job) == [f"{number}" for number in range(8)]

    def test_when_the_first_in_line_times_out_the_next_still_wakes_in_time(self, bench: Bench) -> None:
        queue = bench.quiet()
        queue.enqueue(Job(id="a", delay=10.0))
        (first,) = bench.waiters(1, queue, timeout=5.0)
        (second,) = bench.waiters(1, queue, timeout=60.0)
        bench.clock.advance(5.0)
        assert bench.result(first) is None
        bench.clock.until_waiting(1, bench.limit)
        bench.settle()
        bench.clock.advance(5.0)
        taken = bench.result(second)
        assert taken is not None
        assert taken.id == "a"

    def test_a_waiter_that_times_out_as_a_job_comes_loses_it_to_nobody(self, bench: Bench) -> None:
        queue = bench.quiet()
        for number in range(50):
            (poll,) = bench.waiters(1, queue, timeout=1.0)
            queue.enqueue(Job(id=f"{number}"))
            bench.clock.advance(1.0)
            taken = bench.result(poll) or lease(queue)
            assert (taken.id, taken.attempt) == (f"{number}", 1)
            queue.ack(taken)

    def test_a_job_that_falls_due_as_its_waiter_times_out_is_lost_to_nobody(self, bench: Bench) -> None:
        queue = bench.quiet()
        for number in range(20):
            (poll,) = bench.waiters(1, queue, timeout=1.0)
            queue.enqueue(Job(id=f"{number}", delay=1.0))
            bench.settle()
            bench.clock.advance(1.0)
            taken = bench.result(poll) or lease(queue)
            assert (taken.id, taken.attempt) == (f"{number}", 1)
            queue.ack(taken)

    @pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf"), True, "5", 1e12])
    def test_a_timeout_that_is_none_takes_no_job(self, bench: Bench, timeout: float) -> None:
        queue = bench.quiet()
        queue.enqueue(Job(id="a"))
        with pytest.raises(ConfigError, match="timeout"):
            queue.dequeue(timeout=timeout)
        assert drain(queue) == ["a"]


async def _ticks(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class Cancelling:
    """A task that is cancelled while it waits takes no job, burns no attempt, and passes the wake on."""

    rounds = 500
    """For each of 0 to 3 ticks of the loop between the enqueue and the cancellation."""

    @pytest.mark.parametrize("ticks", range(4))
    def test_a_cancelled_waiter_swallows_no_job(self, lone_bench: Bench, ticks: int) -> None:
        plain = lone_bench.plain()

        async def rounds(queue: AsyncQueue) -> None:
            for number in range(self.rounds):
                waiter = asyncio.create_task(queue.dequeue(timeout=60.0))
                await _ticks(2)
                await queue.enqueue(Job(id=f"{number}"))
                await _ticks(ticks)
                waiter.cancel()
                (got,) = await asyncio.gather(waiter, return_exceptions=True)
                taken = got if isinstance(got, Job) else await self._claim(lone_bench, queue)
                assert (taken.id, taken.attempt) == (f"{number}", 1)
                await queue.ack(taken)

        asyncio.run(rounds(plain.as_async))
        assert plain.stats().acked == self.rounds

    @pytest.mark.parametrize("ticks", range(4))
    def test_the_wake_of_a_cancelled_waiter_goes_to_the_next(self, lone_bench: Bench, ticks: int) -> None:
        plain = lone_bench.plain()

        async def rounds(queue: AsyncQueue) -> None:
            for number in range(self.rounds // 5):
                first = asyncio.create_task(queue.dequeue(timeout=60.0))
                await _ticks(2)
                second = asyncio.create_task(queue.dequeue(timeout=60.0))
                await _ticks(2)
                await queue.enqueue(Job(id=f"{number}"))
                await _ticks(ticks)
                first.cancel()
                (got,) = await asyncio.gather(first, return_exceptions=True)
                if isinstance(got, Job):
                    second.cancel()
                    await asyncio.gather(second, return_exceptions=True)
                else:
                    async with asyncio.timeout(lone_bench.limit):
                        got = await second
                assert got is not None
                await queue.ack(got)

        asyncio.run(rounds(plain.as_async))
        assert plain.stats().acked == self.rounds // 5

    def test_a_cancellation_is_never_swallowed(self, lone_bench: Bench) -> None:
        plain = lone_bench.plain()

        async def main(queue: AsyncQueue) -> None:
            waiters = [asyncio.create_task(queue.dequeue()) for _ in range(20)]
            await _ticks(3)
            for waiter in waiters:
                waiter.cancel()
            async with asyncio.timeout(lone_bench.limit):
                ends = await asyncio.gather(*waiters, return_exceptions=True)
            assert all(isinstance(end, asyncio.CancelledError) for end in ends)
            await queue.enqueue(Job(id="a"))
            assert (await self._claim(lone_bench, queue)).attempt == 1

        asyncio.run(main(plain.as_async))

    def test_one_who_is_cancelled_before_the_call_takes_no_job(self, lone_bench: Bench) -> None:
        plain = lone_bench.plain()
        plain.enqueue(Job(id="a"))

        async def main(queue: AsyncQueue) -> None:
            waiter = asyncio.create_task(queue.dequeue())
            waiter.cancel()
            await asyncio.gather(waiter, return_exceptions=True)

        asyncio.run(main(plain.as_async))
        assert lease(plain).attempt == 1

    def test_when_the_watcher_of_the_clock_is_cancelled_another_takes_over(self, lone_bench: Bench) -> None:
        plain = lone_bench.plain()
        plain.enqueue(Job(id="a", delay=10.0))

        async def main(queue: AsyncQueue) -> None:
            first, second, third = (asyncio.create_task(queue.dequeue(timeout=60.0)) for _ in range(3))
            await self._until(lone_bench, 3)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            third.cancel()
            await asyncio.gather(third, return_exceptions=True)
            await self._until(lone_bench, 1)
            lone_bench.clock.advance(10.0)
            async with asyncio.timeout(lone_bench.limit):
                taken = await second
            assert taken is not None
            assert taken.id == "a"

        asyncio.run(main(plain.as_async))

    async def _claim(self, lone_bench: Bench, queue: AsyncQueue) -> Job:
        """The job that must be there, without any time passing: TimeoutError when it is gone."""
        async with asyncio.timeout(lone_bench.limit):
            taken = await queue.dequeue()
        assert taken is not None
        return taken

    async def _until(self, lone_bench: Bench, count: int) -> None:
        """Until exactly so many tasks wait on the clock, and have done so for some ticks."""
        async with asyncio.timeout(lone_bench.limit):
            quiet = 0
            while quiet < 5:
                await asyncio.sleep(0.001)
                quiet = quiet + 1 if lone_bench.clock.waiting == count else 0

    def test_tasks_and_threads_wait_in_one_line(self, lone_bench: Bench) -> None:
        plain = lone_bench.plain()

        async def main(queue: AsyncQueue) -> None:
            tasks = [asyncio.create_task(queue.dequeue(timeout=60.0)) for _ in range(3)]
            await self._until(lone_bench, 3)
            (thread,) = lone_bench.waiters(1, plain)
            await queue.enqueue_many([Job(id=name) for name in "abcd"])
            async with asyncio.timeout(lone_bench.limit):
                taken = await asyncio.gather(*tasks)
                last = await asyncio.wrap_future(thread)
            assert sorted(job.id for job in (*taken, last) if job) == ["a", "b", "c", "d"]

        asyncio.run(main(plain.as_async))

    def test_close_wakes_tasks_that_wait_for_ever(self, lone_bench: Bench) -> None:
        plain = lone_bench.plain()

        async def main(queue: AsyncQueue) -> None:
            tasks = [asyncio.create_task(queue.dequeue()) for _ in range(5)]
            await _ticks(3)
            await queue.close()
            async with asyncio.timeout(lone_bench.limit):
                ends = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(end, QueueClosed) for end in ends)

        asyncio.run(main(plain.as_async))

    def test_the_async_with_statement_closes_the_queue(self, lone_bench: Bench) -> None:
        plain = lone_bench.plain()

        async def main() -> None:
            async with plain.as_async as queue:
                await queue.enqueue(Job(id="a"))
            with pytest.raises(QueueClosed):
                await queue.enqueue(Job(id="b"))

        asyncio.run(main())
