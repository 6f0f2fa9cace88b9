"""Ack, nack, extend, release and bury: what they do to the lease's holder, and that nobody else can."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ...errors import LeaseLost
from ...job import Job, State
from ...queue import Queue
from ..bench import Bench, drain, lease

Settle = Callable[[Queue, Job], object]

SETTLING: dict[str, Settle] = {
    "ack": lambda queue, job: queue.ack(job),
    "ack_many": lambda queue, job: queue.ack_many([job]),
    "nack": lambda queue, job: queue.nack(job, error="late"),
    "extend": lambda queue, job: queue.extend(job, 60.0),
    "release": lambda queue, job: queue.release(job),
    "release_many": lambda queue, job: queue.release_many([job]),
    "bury": lambda queue, job: queue.bury(job, error="late"),
    "cancel": lambda queue, job: queue.cancel(job),
}
ENDING = {name: settle for name, settle in SETTLING.items() if name != "extend"}
EACH = pytest.mark.parametrize("settle", SETTLING.values(), ids=SETTLING.keys())

SINCE: dict[str, Settle] = {
    "held by another": lambda queue, job: None,
    "waiting for a retry": lambda queue, job: queue.nack(job, delay=60.0),
    "acked": lambda queue, job: queue.ack(job),
    "dead": lambda queue, job: queue.bury(job, error="given up"),
    "cancelled": lambda queue, job: queue.cancel(job),
    "asked to be cancelled": lambda queue, job: queue.cancel(job.id),
}


class BadText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Settling:
    def test_ack_frees_the_id_and_the_place(self, bench: Bench) -> None:
        queue = bench.open(capacity=1)
        queue.enqueue(Job(b"1", id="a"))
        queue.ack(lease(queue))
        queue.enqueue(Job(b"2", id="a"))
        assert lease(queue).payload == b"2"

    def test_a_lease_starts_at_the_dequeue_not_at_the_enqueue(self, bench: Bench) -> None:
        queue = bench.open(lease=30.0)
        queue.enqueue(Job(id="a"))
        bench.clock.advance(29.0)
        held = lease(queue)
        bench.clock.advance(29.0)
        assert queue.stats().inflight == 1
        bench.clock.advance(1.0)
        assert held.lease_until == bench.clock.now()
        assert queue.stats().inflight == 0

    def test_what_is_handed_out_is_a_whole_and_frozen_snapshot(self, bench: Bench) -> None:
        queue = bench.open(queue="mail", max_attempts=7)
        moment = bench.clock.now()
        queue.enqueue(Job(b"\0\xff", id="a", priority=3))
        held = lease(queue)
        assert (held.payload, held.id, held.priority, held.queue) == (b"\0\xff", "a", 3, "mail")
        assert (held.attempt, held.max_attempts, held.state, held.cancelled) == (1, 7, State.INFLIGHT, False)
        assert (held.enqueued_at, held.run_at, held.deadline, held.last_error) == (moment, moment, None, None)
        assert held.fence > 0
        with pytest.raises(AttributeError):
            held.attempt = 5  # type: ignore[misc]  # the point of the test

    @EACH
    @pytest.mark.parametrize("since", SINCE.values(), ids=SINCE.keys())
    def test_a_late_settle_of_a_lost_lease_changes_nothing(self, bench: Bench, settle: Settle, since: Settle) -> None:
        queue = bench.open(lease=30.0)
        queue.enqueue(Job(b"x", id="a"))
        lost = lease(queue)
        bench.clock.advance(30.0)
        held = lease(queue)
        since(queue, held)
        before, figures = queue.find("a"), queue.stats()
        with pytest.raises(LeaseLost) as caught:
            settle(queue, lost)
        assert caught.value.jobs == (lost,)
        assert queue.find("a") == before
        assert queue.stats().ack_too_late == figures.ack_too_late + 1
        assert (queue.stats().size, queue.stats().dead) == (figures.size, figures.dead)
        if before is not None and before.state is State.INFLIGHT:
            queue.ack(held)

    @EACH
    @pytest.mark.parametrize("first", ENDING.values(), ids=ENDING.keys())
    def test_a_lease_settles_once(self, bench: Bench, first: Settle, settle: Settle) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a"))
        held = lease(queue)
        first(queue, held)
        before = queue.find("a")
        with pytest.raises(LeaseLost):
            settle(queue, held)
        assert queue.find("a") == before

    @EACH
    def test_the_lease_of_another_queue_never_fits(self, bench: Bench, settle: Settle) -> None:
        mine, other = bench.open(queue="mine"), bench.open(queue="other")
        for queue in (mine, other):
            queue.enqueue(Job(id="a"))
        held, foreign = lease(mine), lease(other)
        with pytest.raises(LeaseLost):
            settle(mine, foreign)
        mine.ack(held)
        other.ack(foreign)

    @EACH
    def test_the_id_alone_settles_nothing(self, bench: Bench, settle: Settle) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a"))
        held = lease(queue)
        with pytest.raises(LeaseLost):
            settle(queue, Job(id="a", attempt=held.attempt, fence=held.fence))
        queue.ack(held)

    def test_one_who_leases_its_lost_job_again_cannot_use_the_old_lease(self, bench: Bench) -> None:
        queue = bench.open(lease=1.0)
        queue.enqueue(Job(id="a"))
        old = lease(queue)
        bench.clock.advance(1.0)
        new = lease(queue)
        assert new.fence > old.fence
        with pytest.raises(LeaseLost):
            queue.ack(old)
        queue.ack(new)

    def test_fences_rise_over_every_lease_of_an_id_also_when_it_is_used_anew(self, bench: Bench) -> None:
        queue = bench.open()
        fences = []
        for turn in range(6):
            if turn % 2 == 0:
                queue.enqueue(Job(id="a"))
            held = lease(queue)
            fences.append(held.fence)
            if turn % 2 == 0:
                queue.nack(held)
            else:
                queue.ack(held)
        assert fences == sorted(set(fences))

    def test_ack_many_names_the_lost_and_settles_the_others(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue_many([Job(id=name) for name in "abc"])
        jobs = queue.dequeue_many(3)
        queue.nack(jobs[1], delay=9.0)
        with pytest.raises(LeaseLost) as caught:
            queue.ack_many(jobs)
        assert caught.value.jobs == (jobs[1],)
        assert (queue.stats().acked, queue.stats().delayed, queue.stats().inflight) == (2, 1, 0)

    def test_ack_many_of_none_does_nothing_and_of_one_twice_finds_the_second_lost(self, bench: Bench) -> None:
        queue = bench.open()
        queue.ack_many([])
        queue.enqueue(Job(id="a"))
        held = lease(queue)
        with pytest.raises(LeaseLost) as caught:
            queue.ack_many([held, held])
        assert caught.value.jobs == (held,)
        assert queue.stats().acked == 1

    def test_nack_delays_to_the_microsecond_and_keeps_the_error(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a"))
        queue.nack(lease(queue), delay=1.5, error=ValueError("no such address"))
        assert (queue.stats().delayed, queue.stats().retried) == (1, 1)
        bench.clock.advance(1.499999)
        assert queue.dequeue(timeout=0) is None
        bench.clock.advance(0.000001)
        held = lease(queue)
        assert (held.attempt, held.last_error) == (2, "ValueError: no such address")

    def test_nack_without_delay_makes_it_ready_at_once(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a"))
        queue.nack(lease(queue))
        assert lease(queue).attempt == 2

    def test_the_attempt_is_counted_at_the_dequeue_so_that_a_crash_counts(self, bench: Bench) -> None:
        queue = bench.open(lease=1.0, max_attempts=3)
        queue.enqueue(Job(id="a"))
        for attempt in (1, 2, 3):
            assert lease(queue).attempt == attempt
            bench.clock.advance(1.0)
        (dead,) = queue.dead()
        assert (dead.attempt, dead.max_attempts) == (3, 3)
        assert "lease expired" in (dead.last_error or "")
        assert queue.stats().expired_leases == 3

    def test_the_job_may_have_its_own_max_attempts(self, bench: Bench) -> None:
        queue = bench.open(max_attempts=5)
        queue.enqueue(Job(id="a", max_attempts=1))
        queue.nack(lease(queue), error="once is enough")
        (dead,) = queue.dead()
        assert (dead.attempt, dead.max_attempts, dead.last_error) == (1, 1, "once is enough")

    def test_an_expired_lease_makes_the_job_ready_with_no_delay(self, bench: Bench) -> None:
        queue = bench.open(lease=2.0)
        queue.enqueue(Job(id="a"))
        lease(queue)
        bench.clock.advance(2.0)
        held = lease(queue)
        assert (held.attempt, held.run_at) == (2, bench.clock.now())

    def test_what_an_expired_job_says_does_not_depend_on_when_somebody_looked(self, bench: Bench) -> None:
        queue = bench.open(lease=2.0)
        queue.enqueue(Job(id="a"))
        held = lease(queue)
        bench.clock.advance(7.0)
        assert lease(queue).run_at == held.lease_until

    def test_extend_counts_from_now_longer_or_shorter(self, bench: Bench) -> None:
        queue = bench.open(lease=30.0)
        queue.enqueue(Job(id="a"))
        held = lease(queue)
        bench.clock.advance(10.0)
        longer = queue.extend(held, 100.0)
        bench.clock.advance(90.0)
        assert queue.stats().inflight == 1
        shorter = queue.extend(longer, 2.0)
        assert shorter.token == longer.token == held.token
        bench.clock.advance(1.999999)
        assert queue.stats().inflight == 1
        bench.clock.advance(0.000001)
        assert shorter.lease_until == bench.clock.now()
        assert lease(queue).attempt == 2

    def test_an_extended_lease_settles_with_either_snapshot(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue_many([Job(id="a"), Job(id="b")])
        a, b = queue.dequeue_many(2)
        queue.extend(a, 60.0)
        queue.ack(a)
        queue.ack(queue.extend(b, 60.0))
        assert queue.stats().acked == 2

    def test_extend_many_returns_those_that_hold_in_order_and_counts_no_lost_ones(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue_many([Job(id=name) for name in "abc"])
        jobs = queue.dequeue_many(3)
        queue.ack(jobs[1])
        held = queue.extend_many(jobs, 90.0)
        assert [job.id for job in held] == ["a", "c"]
        assert queue.stats().ack_too_late == 0
        assert queue.extend_many([], 1.0) == []

    def test_release_gives_the_attempt_and_the_place_back(self, bench: Bench) -> None:
        queue = bench.open(max_attempts=1)
        queue.enqueue_many([Job(id="a"), Job(id="b")])
        for _ in range(5):
            held = lease(queue)
            assert (held.id, held.attempt) == ("a", 1)
            queue.release(held)
        assert queue.stats().retried == 0
        assert drain(queue) == ["a", "b"]

    def test_release_may_delay(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a"))
        queue.release(lease(queue), delay=3.0)
        bench.clock.advance(2.999999)
        assert queue.dequeue(timeout=0) is None
        bench.clock.advance(0.000001)
        assert lease(queue).attempt == 1

    def test_release_many_gives_all_back_but_the_lost_which_it_names(self, bench: Bench) -> None:
        queue = bench.open(max_attempts=1)
        queue.enqueue_many([Job(id=name) for name in "abcd"])
        jobs = queue.dequeue_many(4)
        queue.ack(jobs[1])
        queue.cancel("d")
        with pytest.raises(LeaseLost) as caught:
            queue.release_many(jobs)
        assert caught.value.jobs == (jobs[1],)
        stats = queue.stats()
        assert (stats.ready, stats.inflight, stats.retried, stats.cancelled, stats.ack_too_late) == (2, 0, 0, 1, 1)
        assert [(job.id, job.attempt) for job in queue.dequeue_many(4)] == [("a", 1), ("c", 1)]

    def test_release_many_may_delay(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue_many([Job(id="a"), Job(id="b")])
        queue.release_many(queue.dequeue_many(2), delay=3.0)
        assert queue.stats().delayed == 2
        bench.clock.advance(2.999999)
        assert queue.dequeue(timeout=0) is None
        bench.clock.advance(0.000001)
        assert drain(queue) == ["a", "b"]

    def test_release_many_of_none_does_nothing_and_of_one_twice_finds_the_second_lost(self, bench: Bench) -> None:
        queue = bench.open()
        queue.release_many([])
        queue.enqueue(Job(id="a"))
        held = lease(queue)
        with pytest.raises(LeaseLost) as caught:
            queue.release_many([held, held])
        assert caught.value.jobs == (held,)
        assert (queue.stats().ready, queue.stats().ack_too_late) == (1, 1)

    @pytest.mark.parametrize("settle", ["ack_many", "release_many"])
    @pytest.mark.parametrize("old_first", [True, False])
    def test_of_two_leases_of_one_job_in_a_batch_the_old_one_is_lost(
        self, bench: Bench, settle: str, old_first: bool
    ) -> None:
        queue = bench.open(lease=1.0)
        queue.enqueue(Job(id="a"))
        old = lease(queue)
        bench.clock.advance(1.0)
        new = lease(queue)
        with pytest.raises(LeaseLost) as caught:
            getattr(queue, settle)([old, new] if old_first else [new, old])
        assert caught.value.jobs == (old,)
        assert (queue.stats().inflight, queue.stats().ack_too_late) == (0, 1)

    def test_bury_is_final_whatever_attempts_are_left(self, bench: Bench) -> None:
        queue = bench.open(max_attempts=5)
        queue.enqueue(Job(id="a"))
        queue.bury(lease(queue), error="can never work")
        (dead,) = queue.dead()
        assert (dead.state, dead.attempt, dead.last_error) == (State.DEAD, 1, "can never work")
        assert queue.stats().size == 0

    @pytest.mark.parametrize(
        ("error", "kept"),
        [
            ("", ""),
            ("a\0b", "a\\x00b"),
            ("\ud800", "\\ud800"),
            (BadText(), "BadText: (its message cannot be shown: RuntimeError)"),
            (ValueError("\0"), "ValueError: \\x00"),
        ],
        ids=["empty", "NUL", "lone surrogate", "broken str", "exception with NUL"],
    )
    def test_no_error_text_can_stop_a_settle(self, bench: Bench, error: BaseException | str, kept: str) -> None:
        queue = bench.open()
        queue.enqueue_many([Job(id="a"), Job(id="b")])
        a, b = queue.dequeue_many(2)
        queue.nack(a, error=error)
        queue.bury(b, error=error)
        assert lease(queue).last_error == kept
        assert queue.dead()[0].last_error == kept

    def test_a_huge_error_text_is_cut_and_says_so(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a"))
        queue.bury(lease(queue), error="x" * 1_000_000)
        kept = queue.dead()[0].last_error or ""
        assert len(kept) < 10_000
        assert "cut: 1,000,000 characters" in kept
