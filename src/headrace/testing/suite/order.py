"""Order: priority first, then first come first served by the place in line; and whose age is told."""

from __future__ import annotations

import random

from ...job import Job
from ..bench import Bench, drain, lease

LOWEST, HIGHEST = -(2**31), 2**31 - 1


class Order:
    def test_the_higher_priority_goes_first_extremes_included(self, bench: Bench) -> None:
        queue = bench.open()
        priorities = [0, LOWEST, 1, HIGHEST, -1, HIGHEST, LOWEST, 0]
        queue.enqueue_many([Job(id=f"{place}", priority=value) for place, value in enumerate(priorities)])
        assert drain(queue) == ["3", "5", "2", "0", "7", "4", "1", "6"]

    def test_equal_priorities_are_first_in_first_out_and_payloads_are_never_compared(self, bench: Bench) -> None:
        queue = bench.open(capacity=1000)
        names = [f"{number}" for number in range(1000)]
        payloads = [bytes([255 - number % 256]) for number in range(1000)]
        queue.enqueue_many([Job(payload, id=name) for name, payload in zip(names, payloads, strict=True)])
        taken = queue.dequeue_many(1000)
        assert [job.id for job in taken] == names
        queue.ack_many(taken)

    def test_any_mix_comes_out_by_priority_then_by_arrival(self, bench: Bench) -> None:
        queue = bench.open()
        dice = random.Random(7)
        jobs = [Job(id=f"{number:03}", priority=dice.choice([-1, 0, 5])) for number in range(60)]
        for job in jobs:
            queue.enqueue(job)
        assert drain(queue) == [job.id for job in sorted(jobs, key=lambda job: (-job.priority, job.id))]

    def test_a_retried_job_keeps_its_place(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue_many([Job(id=name) for name in "abc"])
        queue.nack(lease(queue))
        assert drain(queue) == ["a", "b", "c"]

    def test_a_job_whose_lease_ran_out_keeps_its_place(self, bench: Bench) -> None:
        queue = bench.open(lease=5.0)
        queue.enqueue_many([Job(id=name) for name in "abc"])
        lease(queue)
        bench.clock.advance(5.0)
        assert drain(queue) == ["a", "b", "c"]

    def test_a_delayed_job_stands_where_it_was_enqueued_once_it_is_due(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="late", delay=5.0))
        queue.enqueue(Job(id="now"))
        bench.clock.advance(5.0)
        assert drain(queue) == ["late", "now"]

    def test_a_replayed_job_gets_a_new_place_at_the_tail(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue_many([Job(id=name) for name in "abc"])
        queue.bury(lease(queue))
        assert queue.replay() == 1
        assert drain(queue) == ["b", "c", "a"]

    def test_a_job_enqueued_anew_starts_at_the_tail_with_no_attempt(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue_many([Job(id="a"), Job(id="b")])
        held = lease(queue)
        queue.ack(held)
        queue.enqueue(held)
        assert [job.id for job in queue.dequeue_many(2)] == ["b", "a"]
        found = queue.find("a")
        assert found is not None
        assert found.attempt == 1

    def test_dequeue_many_takes_what_is_there_up_to_its_limit_in_order(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue_many([Job(id=name, priority=int(name in "ce")) for name in "abcde"])
        assert [job.id for job in queue.dequeue_many(3)] == ["c", "e", "a"]
        assert [job.id for job in queue.dequeue_many(100)] == ["b", "d"]
        assert queue.dequeue_many(1, timeout=0) == []

    def test_the_first_enqueue_time_survives_retries_and_expiry(self, bench: Bench) -> None:
        queue = bench.open(lease=1.0)
        first = bench.clock.now()
        queue.enqueue(Job(id="a"))
        bench.clock.advance(10.0)
        queue.nack(lease(queue))
        assert queue.stats().oldest_ready == 10.0
        held = lease(queue)
        bench.clock.advance(1.0)
        assert queue.stats().oldest_ready == 11.0
        assert held.enqueued_at == lease(queue).enqueued_at == first

    def test_the_first_enqueue_time_survives_death_and_replay(self, bench: Bench) -> None:
        queue = bench.open()
        first = bench.clock.now()
        queue.enqueue(Job(id="a"))
        queue.bury(lease(queue))
        bench.clock.advance(60.0)
        queue.replay()
        assert queue.stats().oldest_ready == 60.0
        assert lease(queue).enqueued_at == first

    def test_the_first_enqueue_time_survives_being_enqueued_again_by_its_owner(self, bench: Bench) -> None:
        queue = bench.open()
        first = bench.clock.now()
        queue.enqueue(Job(id="a"))
        queue.bury(lease(queue))
        bench.clock.advance(60.0)
        (mine,) = queue.take_dead(1)
        queue.enqueue(Job(mine.payload, id="again", enqueued_at=mine.enqueued_at))
        assert queue.stats().oldest_ready == 60.0
        assert lease(queue).enqueued_at == first

    def test_oldest_ready_is_the_age_of_the_oldest_ready_job_not_of_the_first_in_line(self, bench: Bench) -> None:
        queue = bench.open()
        assert queue.stats().oldest_ready == 0.0
        queue.enqueue(Job(id="a"))
        bench.clock.advance(3.0)
        queue.enqueue(Job(id="b", priority=9))
        bench.clock.advance(4.0)
        assert queue.stats().oldest_ready == 7.0
        queue.ack(lease(queue))
        assert queue.stats().oldest_ready == 7.0
        lease(queue)
        assert queue.stats().oldest_ready == 0.0

    def test_delayed_and_running_jobs_are_not_the_oldest_ready(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue_many([Job(id="running"), Job(id="delayed", delay=99.0)])
        lease(queue)
        bench.clock.advance(5.0)
        queue.enqueue(Job(id="new"))
        bench.clock.advance(1.0)
        assert queue.stats().oldest_ready == 1.0
