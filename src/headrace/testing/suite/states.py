"""The state table: what each of five events does to a job in each of five states; 22 cells, each a test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ...errors import DuplicateJob, LeaseLost
from ...job import Job, State
from ...queue import Queue
from ..bench import Bench, lease

LEASE = 30.0
NEVER = Job(id="a", fence=1, token=12345)
"""A lease that nobody ever gave."""


def bring(bench: Bench, queue: Queue, state: State | None) -> Job:
    """Put job ``a`` into ``state``; returns its current lease, or else a stale one."""
    if state is None:
        return NEVER
    queue.enqueue(Job(b"first", id="a"))
    held = lease(queue)
    if state is State.READY:
        queue.release(held)
    elif state is State.DELAYED:
        queue.nack(held, delay=5.0)
    elif state is State.DEAD:
        queue.bury(held, error="buried")
    found = queue.find("a")
    assert found is not None
    assert found.state is state
    return held


STATES = [None, *State]
ROWS = pytest.mark.parametrize("state", STATES, ids=[str(state or "none") for state in STATES])


class States:
    @ROWS
    def test_enqueue_of_the_same_id(self, bench: Bench, state: State | None) -> None:
        queue = bench.open()
        bring(bench, queue, state)
        if state in (None, State.DEAD):
            queue.enqueue(Job(b"second", id="a"))
            found = queue.find("a")
            assert found is not None
            assert (found.payload, found.state, found.attempt) == (b"second", State.READY, 0)
            return
        before = queue.find("a")
        with pytest.raises(DuplicateJob, match="'a'"):
            queue.enqueue(Job(b"second", id="a"))
        assert queue.find("a") == before

    @ROWS
    def test_dequeue(self, bench: Bench, state: State | None) -> None:
        queue = bench.open()
        bring(bench, queue, state)
        before = queue.find("a")
        taken = queue.dequeue(timeout=0)
        if state is not State.READY:
            assert taken is None
            assert queue.find("a") == before
            return
        assert taken is not None
        assert before is not None
        assert (taken.id, taken.attempt, taken.state) == ("a", before.attempt + 1, State.INFLIGHT)
        assert queue.dequeue(timeout=0) is None

    @ROWS
    def test_ack(self, bench: Bench, state: State | None) -> None:
        queue = bench.open()
        held = bring(bench, queue, state)
        if state is not State.INFLIGHT:
            self.refused(queue, lambda: queue.ack(held))
            return
        queue.ack(held)
        assert queue.find("a") is None
        assert queue.stats().acked == 1

    @ROWS
    @pytest.mark.parametrize("attempts", [1, 2], ids=["last attempt", "attempts left"])
    def test_nack(self, bench: Bench, state: State | None, attempts: int) -> None:
        queue = bench.open(max_attempts=attempts + (state in (State.READY, State.DELAYED)))
        held = bring(bench, queue, state)
        if state is not State.INFLIGHT:
            self.refused(queue, lambda: queue.nack(held))
            return
        queue.nack(held, delay=5.0, error="no")
        found = queue.find("a")
        assert found is not None
        assert (found.state, found.last_error) == (State.DEAD if attempts == 1 else State.DELAYED, "no")
        assert found.attempt == 1

    def refused(self, queue: Queue, settle: Callable[[], None]) -> None:
        before, late = queue.find("a"), queue.stats().ack_too_late
        with pytest.raises(LeaseLost, match="'a'"):
            settle()
        assert queue.find("a") == before
        assert queue.stats().ack_too_late == late + 1

    def test_time_makes_a_delayed_job_ready_at_exactly_run_at(self, bench: Bench) -> None:
        queue = bench.open()
        bring(bench, queue, State.DELAYED)
        bench.clock.advance(4.999999)
        assert queue.dequeue(timeout=0) is None
        bench.clock.advance(0.000001)
        assert lease(queue).run_at == bench.clock.now()

    @pytest.mark.parametrize("attempts", [1, 2], ids=["last attempt", "attempts left"])
    def test_time_ends_a_lease_at_exactly_lease_until(self, bench: Bench, attempts: int) -> None:
        queue = bench.open(lease=LEASE, max_attempts=attempts)
        held = bring(bench, queue, State.INFLIGHT)
        bench.clock.advance(LEASE - 0.000001)
        found = queue.find("a")
        assert found is not None
        assert (found.state, queue.stats().expired_leases) == (State.INFLIGHT, 0)
        bench.clock.advance(0.000001)
        assert bench.clock.now() == held.lease_until
        found = queue.find("a")
        assert found is not None
        assert (found.state, found.attempt) == (State.DEAD if attempts == 1 else State.READY, 1)
        assert queue.stats().expired_leases == 1
        with pytest.raises(LeaseLost):
            queue.ack(held)
