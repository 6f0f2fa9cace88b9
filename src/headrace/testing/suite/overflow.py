"""Full queues: what counts, who is refused, who waits and who leaves; and batches, which are all or nothing."""

from __future__ import annotations

import queue as stdlib_queue

import pytest

from ...errors import DuplicateJob, InvalidJob, QueueClosed, QueueFull
from ...job import Job
from ...overflow import Block
from ..bench import Bench, drain, lease

POLICIES = pytest.mark.parametrize("policy", ["reject", Block(timeout=0.0), "drop_oldest", "drop_newest"])


class Full:
    def test_capacity_counts_ready_delayed_and_inflight(self, bench: Bench) -> None:
        queue = bench.open(capacity=3)
        queue.enqueue_many([Job(id="inflight"), Job(id="ready"), Job(id="delayed", delay=9.0)])
        lease(queue)
        with pytest.raises(QueueFull, match="full"):
            queue.enqueue(Job(id="more"))
        assert queue.find("more") is None
        assert queue.stats().enqueued == 3

    def test_dead_letters_take_no_room(self, bench: Bench) -> None:
        queue = bench.open(capacity=1)
        queue.enqueue(Job(id="a"))
        queue.bury(lease(queue))
        queue.enqueue(Job(id="b"))
        assert (queue.stats().size, queue.stats().dead) == (1, 1)

    def test_queue_full_is_the_standard_librarys_full(self, bench: Bench) -> None:
        queue = bench.open(capacity=1)
        queue.enqueue(Job(id="a"))
        with pytest.raises(stdlib_queue.Full):
            queue.enqueue(Job(id="b"))

    @POLICIES
    def test_a_duplicate_costs_nobody_their_place(self, bench: Bench, policy: object) -> None:
        queue = bench.open(capacity=3, overflow=policy)
        queue.enqueue_many([Job(b"1", id="a"), Job(id="b")])
        with pytest.raises(DuplicateJob):
            queue.enqueue(Job(b"2", id="a"))
        assert (queue.stats().size, queue.stats().dropped, queue.stats().enqueued) == (2, 0, 2)

    def test_checks_come_in_the_order_closed_invalid_full_duplicate(self, bench: Bench) -> None:
        queue = bench.open(capacity=1)
        queue.enqueue(Job(id="a"))
        with pytest.raises(InvalidJob):
            queue.enqueue(Job(id="", priority=1))
        with pytest.raises(QueueFull):
            queue.enqueue(Job(id="a"))
        queue.close()
        with pytest.raises(QueueClosed):
            queue.enqueue(Job(id=""))

    # Batches

    @pytest.mark.parametrize(
        ("batch", "error"),
        [
            ([Job(id="x"), Job(id="")], InvalidJob),
            ([Job(id="x"), Job(id="a")], DuplicateJob),
            ([Job(id="x"), Job(id="y"), Job(id="x")], DuplicateJob),
            ([Job(id=f"{number}") for number in range(10)], QueueFull),
        ],
        ids=["invalid", "duplicate", "twice in the batch", "full"],
    )
    def test_a_batch_goes_in_whole_or_not_at_all(self, bench: Bench, batch: list[Job], error: type[Exception]) -> None:
        queue = bench.open(capacity=10)
        queue.enqueue(Job(id="a"))
        before = queue.stats()
        with pytest.raises(error):
            queue.enqueue_many(batch)
        assert queue.stats() == before
        assert queue.enqueue_many([Job(id="x"), Job(id="y")])
        assert drain(queue) == ["a", "x", "y"]

    def test_an_empty_batch_is_no_error(self, bench: Bench) -> None:
        queue = bench.open(capacity=1)
        queue.enqueue(Job(id="a"))
        assert queue.enqueue_many([]) == []

    def test_a_batch_may_be_any_iterable_and_comes_back_with_its_ids(self, bench: Bench) -> None:
        queue = bench.open()
        jobs = queue.enqueue_many(Job(bytes([number])) for number in range(3))
        assert len({job.id for job in jobs}) == 3
        assert drain(queue) == [job.id for job in jobs]

    # Block

    def test_block_waits_for_room_at_most_its_timeout(self, bench: Bench) -> None:
        queue = bench.quiet(capacity=1, overflow=Block(timeout=5.0))
        queue.enqueue(Job(id="a"))
        late = bench.spawn(queue.enqueue, Job(id="b"))
        bench.clock.until_waiting(1, bench.limit)
        bench.clock.advance(4.999999)
        bench.settle()
        assert not late.done()
        bench.clock.advance(0.000001)
        with pytest.raises(QueueFull):
            bench.result(late)
        assert queue.find("b") is None

    @pytest.mark.parametrize("way", ["ack", "bury", "cancel"])
    def test_block_goes_on_when_there_is_room(self, bench: Bench, way: str) -> None:
        queue = bench.quiet(capacity=1, overflow=Block(timeout=60.0))
        queue.enqueue(Job(id="a"))
        waiting = bench.spawn(queue.enqueue, Job(id="b"))
        bench.clock.until_waiting(1, bench.limit)
        if way == "cancel":
            queue.cancel("a")
        else:
            getattr(queue, way)(lease(queue))
        assert bench.result(waiting).id == "b"
        assert drain(queue) == ["b"]

    def test_block_goes_on_when_time_makes_room(self, bench: Bench) -> None:
        queue = bench.quiet(capacity=1, overflow=Block(timeout=60.0), max_attempts=1, lease=10.0)
        queue.enqueue(Job(id="a"))
        lease(queue)
        waiting = bench.spawn(queue.enqueue, Job(id="b"))
        bench.clock.until_waiting(1, bench.limit)
        bench.clock.advance(10.0)
        assert bench.result(waiting).id == "b"

    def test_blocked_producers_are_served_first_come_first_served(self, bench: Bench) -> None:
        queue = bench.quiet(capacity=1, overflow=Block(timeout=3600.0))
        queue.enqueue(Job(id="0"))
        waiting = []
        for number in range(1, 6):
            waiting.append(bench.spawn(queue.enqueue, Job(id=f"{number}")))
            bench.clock.until_waiting(number, bench.limit)
        for number, late in enumerate(waiting):
            held = lease(queue)
            assert held.id == f"{number}"
            queue.ack(held)
            bench.result(late)

    def test_block_wakes_with_queue_closed_when_the_queue_closes(self, bench: Bench) -> None:
        queue = bench.quiet(capacity=1, overflow=Block(timeout=3600.0))
        queue.enqueue(Job(id="a"))
        waiting = bench.spawn(queue.enqueue, Job(id="b"))
        bench.clock.until_waiting(1, bench.limit)
        queue.close()
        with pytest.raises(QueueClosed):
            bench.result(waiting)

    def test_block_without_a_timeout_waits_for_as_long_as_it_takes(self, bench: Bench) -> None:
        queue = bench.quiet(capacity=1, overflow="block")
        queue.enqueue(Job(id="a"))
        waiting = bench.spawn(queue.enqueue, Job(id="b"))
        bench.settle()
        bench.clock.advance(1e7)
        bench.settle()
        assert not waiting.done()
        queue.ack(lease(queue))
        bench.result(waiting)

    def test_a_batch_that_can_never_fit_does_not_block(self, bench: Bench) -> None:
        queue = bench.open(capacity=2, overflow="block")
        with pytest.raises(QueueFull):
            bench.result(bench.spawn(queue.enqueue_many, [Job() for _ in range(3)]))

    # Drop

    def test_drop_oldest_drops_who_was_first_enqueued_longest_ago(self, bench: Bench) -> None:
        queue = bench.open(capacity=3, overflow="drop_oldest")
        for number in range(3):
            queue.enqueue(Job(id=f"{number}", priority=-number))
            bench.clock.advance(1.0)
        queue.enqueue(Job(id="new", priority=-9))
        assert drain(queue) == ["1", "2", "new"]
        assert (queue.stats().dropped, queue.stats().enqueued) == (1, 4)

    def test_drop_oldest_takes_delayed_jobs_when_none_is_ready_the_oldest_first(self, bench: Bench) -> None:
        queue = bench.open(capacity=2, overflow="drop_oldest")
        queue.enqueue(Job(id="older", delay=100.0))
        bench.clock.advance(1.0)
        queue.enqueue(Job(id="younger", delay=5.0))
        queue.enqueue(Job(id="new"))
        assert queue.find("older") is None
        assert queue.find("younger") is not None

    def test_drop_oldest_takes_a_ready_job_before_an_older_delayed_one(self, bench: Bench) -> None:
        queue = bench.open(capacity=2, overflow="drop_oldest")
        queue.enqueue(Job(id="delayed", delay=100.0))
        bench.clock.advance(1.0)
        queue.enqueue(Job(id="ready"))
        queue.enqueue(Job(id="new"))
        assert drain(queue) == ["new"]
        assert queue.find("delayed") is not None

    def test_drop_oldest_never_drops_what_runs(self, bench: Bench) -> None:
        queue = bench.open(capacity=2, overflow="drop_oldest")
        queue.enqueue_many([Job(id="a"), Job(id="b")])
        jobs = queue.dequeue_many(2)
        with pytest.raises(QueueFull):
            queue.enqueue(Job(id="c"))
        queue.ack_many(jobs)

    def test_drop_oldest_makes_room_for_a_batch_or_for_none_of_it(self, bench: Bench) -> None:
        queue = bench.open(capacity=4, overflow="drop_oldest")
        queue.enqueue_many([Job(id=name) for name in "abcd"])
        held = lease(queue)
        with pytest.raises(QueueFull):
            queue.enqueue_many([Job() for _ in range(4)])
        assert queue.stats().ready == 3
        queue.enqueue_many([Job(id="e"), Job(id="f")])
        queue.ack(held)
        assert drain(queue) == ["d", "e", "f"]

    def test_drop_newest_drops_the_newcomer_counted_and_unseen(self, bench: Bench) -> None:
        queue = bench.open(capacity=2, overflow="drop_newest")
        queue.enqueue_many([Job(id="a"), Job(id="b")])
        assert queue.enqueue(Job(id="c")).id == "c"
        assert queue.find("c") is None
        assert drain(queue) == ["a", "b"]
        assert (queue.stats().dropped, queue.stats().enqueued) == (1, 3)

    def test_drop_newest_keeps_of_a_batch_what_fits(self, bench: Bench) -> None:
        queue = bench.open(capacity=3, overflow="drop_newest")
        queue.enqueue(Job(id="a"))
        queue.enqueue_many([Job(id=name) for name in "bcde"])
        assert drain(queue) == ["a", "b", "c"]
        assert queue.stats().dropped == 2

    @POLICIES
    def test_an_id_that_was_refused_or_dropped_is_free(self, bench: Bench, policy: object) -> None:
        queue = bench.open(capacity=1, overflow=policy)
        for name in "abc":
            try:
                queue.enqueue(Job(id=name))
            except QueueFull:
                assert queue.find(name) is None
        drain(queue)
        for name in "abc":
            queue.enqueue(Job(id=name))
            assert drain(queue) == [name]
