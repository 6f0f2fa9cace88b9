"""Pause, resume, cancel, close; and what a durable queue keeps."""

from __future__ import annotations

import pytest

from ...errors import LeaseLost, QueueClosed, Unsupported
from ...job import Job, State
from ..bench import Bench, drain, lease


class Lifecycle:
    # Pause

    def test_a_paused_queue_hands_out_nothing_and_takes_everything(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a"))
        queue.pause()
        queue.pause()
        assert queue.stats().paused
        queue.enqueue(Job(id="b"))
        assert queue.dequeue(timeout=0) is None
        assert queue.dequeue_many(5, timeout=0) == []
        queue.resume()
        queue.resume()
        assert not queue.stats().paused
        assert drain(queue) == ["a", "b"]

    def test_what_runs_may_settle_while_the_queue_is_paused(self, bench: Bench) -> None:
        queue = bench.open(lease=9.0)
        queue.enqueue_many([Job(id="a"), Job(id="b"), Job(id="c")])
        a, b, _ = queue.dequeue_many(3)
        queue.pause()
        queue.ack(a)
        queue.nack(b)
        bench.clock.advance(9.0)
        assert (queue.stats().ready, queue.stats().inflight) == (2, 0)
        assert queue.dequeue(timeout=0) is None

    def test_resume_wakes_who_waits(self, bench: Bench) -> None:
        queue = bench.quiet()
        queue.pause()
        queue.enqueue_many([Job(id="a"), Job(id="b")])
        polls = bench.waiters(2, queue)
        queue.resume()
        assert {job.id for poll in polls if (job := bench.result(poll))} == {"a", "b"}

    def test_a_long_poll_of_a_paused_queue_ends_with_its_timeout(self, bench: Bench) -> None:
        queue = bench.quiet()
        queue.pause()
        queue.enqueue(Job(id="a"))
        (poll,) = bench.waiters(1, queue, timeout=5.0)
        bench.clock.advance(5.0)
        assert bench.result(poll) is None

    # Cancel

    def test_a_ready_job_that_is_cancelled_never_starts(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue_many([Job(id=name) for name in "abc"])
        assert queue.cancel("b") is True
        assert queue.cancel("b") is False
        assert drain(queue) == ["a", "c"]
        assert queue.stats().cancelled == 1
        queue.enqueue(Job(id="b"))

    @pytest.mark.parametrize("retry", [False, True], ids=["delayed", "waiting for a retry"])
    def test_a_delayed_job_that_is_cancelled_never_starts(self, bench: Bench, retry: bool) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a", delay=0.0 if retry else 5.0))
        if retry:
            queue.nack(lease(queue), delay=5.0)
        assert queue.cancel("a") is True
        bench.clock.advance(5.0)
        assert queue.dequeue(timeout=0) is None
        assert queue.find("a") is None

    def test_a_running_job_is_told_at_its_next_heartbeat(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue_many([Job(id="a"), Job(id="b")])
        a, b = queue.dequeue_many(2)
        assert queue.cancel("a") is False
        assert queue.extend(a, 30.0).cancelled
        assert [job.cancelled for job in queue.extend_many([a, b], 30.0)] == [True, False]

    @pytest.mark.parametrize("way", ["nack", "nack at the last attempt", "release", "lease runs out"])
    def test_a_running_job_asked_to_cancel_is_never_retried(self, bench: Bench, way: str) -> None:
        queue = bench.open(lease=30.0, max_attempts=1 if "last" in way else 5)
        queue.enqueue(Job(id="a"))
        held = lease(queue)
        queue.cancel("a")
        if way == "release":
            queue.release(held)
        elif way == "lease runs out":
            bench.clock.advance(30.0)
        else:
            queue.nack(held, error="interrupted")
        assert queue.find("a") is None
        figures = queue.stats()
        assert (figures.cancelled, figures.dead, figures.retried, figures.size) == (1, 0, 0, 0)

    def test_a_running_job_asked_to_cancel_may_still_end_well(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a"))
        held = lease(queue)
        queue.cancel("a")
        queue.ack(held)
        assert (queue.stats().acked, queue.stats().cancelled) == (1, 0)

    def test_the_holder_of_the_lease_ends_a_job_as_cancelled(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a"))
        held = lease(queue)
        assert queue.cancel(held) is True
        assert (queue.stats().cancelled, queue.stats().acked, queue.stats().size) == (1, 0, 0)
        with pytest.raises(LeaseLost):
            queue.cancel(held)

    def test_cancel_of_an_unknown_done_or_dead_id_is_false_and_changes_nothing(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue_many([Job(id="done"), Job(id="dead")])
        queue.ack(lease(queue))
        queue.bury(lease(queue))
        before = queue.stats()
        assert [queue.cancel(name) for name in ("done", "dead", "unknown", "")] == [False] * 4
        assert queue.stats() == before

    def test_an_id_used_anew_is_not_cancelled_by_what_was_asked_of_the_old_one(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a"))
        held = lease(queue)
        queue.cancel("a")
        queue.bury(held)
        assert queue.replay() == 1
        held = lease(queue)
        assert not held.cancelled
        queue.nack(held)
        assert lease(queue).attempt == 2

    # Close

    def test_a_closed_queue_takes_no_jobs_and_drains_what_is_due(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue_many([Job(id="a"), Job(id="b"), Job(id="due", delay=5.0)])
        bench.clock.advance(5.0)
        queue.close()
        with pytest.raises(QueueClosed):
            queue.enqueue(Job(id="c"))
        with pytest.raises(QueueClosed):
            queue.enqueue_many([])
        assert [job.id for job in queue.dequeue_many(2)] == ["a", "b"]
        assert lease(queue).id == "due"
        for timeout in (0, 5.0, None):
            with pytest.raises(QueueClosed):
                queue.dequeue(timeout=timeout)

    def test_what_is_not_due_is_kept_by_a_durable_queue_and_dropped_counted_by_another(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="later", delay=60.0))
        queue.close()
        figures = queue.stats()
        durable = queue.capabilities.durable
        assert (figures.delayed, figures.dropped) == ((1, 0) if durable else (0, 1))

    def test_what_was_handed_out_before_the_close_may_settle_after_it(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue_many([Job(id=name) for name in "abcd"])
        a, b, c, d = queue.dequeue_many(4)
        queue.close()
        queue.ack(queue.extend(a, 60.0))
        queue.nack(b)
        queue.release(c)
        queue.bury(d)
        assert [job.id for job in queue.dequeue_many(9)] == ["b", "c"]
        assert queue.stats().dead == 1

    def test_close_may_be_called_twice_and_what_shows_still_shows(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a"))
        queue.close()
        queue.close()
        found = queue.find("a")
        assert found is not None
        assert found.state is State.READY
        assert queue.stats().ready == 1

    def test_close_wakes_every_waiter(self, bench: Bench) -> None:
        queue = bench.quiet()
        polls = bench.waiters(5, queue)
        queue.close()
        for poll in polls:
            with pytest.raises(QueueClosed):
                bench.result(poll)

    def test_the_block_of_a_with_statement_closes_the_queue(self, bench: Bench) -> None:
        plain = bench.plain()
        with plain as queue:
            queue.enqueue(Job(id="a"))
        with pytest.raises(QueueClosed):
            plain.enqueue(Job(id="b"))

    # Durable queues

    def test_another_handle_sees_everything_and_a_handle_closes_for_itself_alone(self, bench: Bench) -> None:
        queue = bench.open(lease=30.0)
        if not queue.capabilities.durable:
            with pytest.raises(Unsupported):
                bench.again(queue)
            return
        queue.enqueue_many([Job(id="leased"), Job(id="dead"), Job(b"p", id="ready"), Job(id="later", delay=9.0)])
        leased, dead = queue.dequeue_many(2)
        queue.bury(dead, error="why")
        queue.pause()
        before = queue.stats()
        queue.close()
        other = bench.again(queue)
        assert other.stats() == before
        other.resume()
        held = lease(other)
        assert (held.id, held.payload) == ("ready", b"p")
        assert held.fence > max(leased.fence, dead.fence)
        other.ack(leased)
        assert [job.last_error for job in other.dead()] == ["why"]
        bench.clock.advance(9.0)
        assert lease(other).id == "later"

    def test_fences_rise_over_a_reopening(self, bench: Bench) -> None:
        queue = bench.open()
        fences = []
        for _ in range(4):
            queue.enqueue(Job(id="a"))
            held = lease(queue)
            fences.append(held.fence)
            queue.ack(held)
            if queue.capabilities.durable:
                queue.close()
                queue = bench.again(queue)
            else:
                bench.clock.advance(1.0)
                queue = bench.open()
        assert fences == sorted(set(fences))
