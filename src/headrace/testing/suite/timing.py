"""Time: boundaries, deadlines, the calendar, and a wall clock that steps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from ...job import Job, State
from ..bench import Bench, drain, lease

HOUR = 3600.0
WATCH = 60.0
"""Seconds within which a queue that nobody talks to must notice that the calendar was moved."""


class Timing:
    def test_promotion_drains_everything_due_in_one_call(self, bench: Bench) -> None:
        queue = bench.open(lease=10.0, max_attempts=2)
        queue.enqueue_many([Job(id=f"lease {number}") for number in range(40)])
        queue.enqueue_many([Job(id=f"last {number}", max_attempts=1) for number in range(30)])
        assert len(queue.dequeue_many(70)) == 70
        queue.enqueue_many([Job(id=f"delayed {number}", delay=1 + number / 10) for number in range(50)])
        bench.clock.advance(10.0)
        figures = queue.stats()
        assert (figures.ready, figures.delayed, figures.inflight, figures.dead) == (90, 0, 0, 30)

    @pytest.mark.parametrize("call", ["find", "dead", "cancel", "pause", "resume", "take_dead", "enqueue", "replay"])
    def test_every_call_first_moves_what_is_due(self, bench: Bench, call: str) -> None:
        """The raw state is looked at right behind the call, before any other."""
        queue = bench.open(lease=10.0, max_attempts=1)
        queue.enqueue_many([Job(id="a"), Job(id="b", delay=10.0)])
        lease(queue)
        bench.clock.advance(10.0)
        given = {"find": ("b",), "cancel": ("none",), "take_dead": (0,), "enqueue": (Job(id="c"),), "replay": (0,)}
        getattr(queue, call)(*given.get(call, ()))
        figures = queue.stats()
        assert (figures.dead, figures.delayed) == (1, 0)

    def test_a_look_shows_what_is_due_as_ready(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a", delay=10.0))
        bench.clock.advance(10.0)
        found = queue.find("a")
        assert found is not None
        assert found.state is State.READY

    def test_a_delay_is_exact_to_the_microsecond_and_less_is_none(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a", delay=0.000001))
        queue.enqueue(Job(id="b", delay=1e-9))
        queue.enqueue(Job(id="c", delay=0))
        assert drain(queue) == ["b", "c"]
        bench.clock.advance(0.000001)
        assert drain(queue) == ["a"]

    def test_run_at_in_the_past_means_now(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a", run_at=bench.clock.now() - timedelta(days=1)))
        queue.enqueue(Job(id="b", run_at=datetime(1, 1, 1, tzinfo=UTC)))
        queue.enqueue(Job(id="c", run_at=datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=9)))))
        queue.enqueue(Job(id="d", run_at=bench.clock.now()))
        assert drain(queue) == ["a", "b", "c", "d"]

    def test_all_zones_of_one_instant_are_one_instant(self, bench: Bench) -> None:
        queue = bench.open()
        moment = bench.clock.now() + timedelta(hours=1, microseconds=7)
        zones = (UTC, timezone(timedelta(hours=9)), ZoneInfo("America/New_York"), ZoneInfo("Asia/Kathmandu"))
        queue.enqueue_many([Job(id=f"{place}", run_at=moment.astimezone(zone)) for place, zone in enumerate(zones)])
        bench.clock.advance(HOUR + 0.000006)
        assert queue.dequeue(timeout=0) is None
        bench.clock.advance(0.000001)
        assert [job.run_at for job in queue.dequeue_many(9)] == [moment] * 4

    def test_both_readings_of_an_ambiguous_hour_are_kept_apart(self, bench: Bench) -> None:
        queue = bench.open()
        twice = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
        queue.enqueue_many([Job(id="second", run_at=twice.replace(fold=1)), Job(id="first", run_at=twice)])
        first, second = queue.find("first"), queue.find("second")
        assert first is not None
        assert second is not None
        assert first.run_at == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
        assert second.run_at == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)

    def test_the_last_moment_of_the_calendar_is_kept_whatever_the_clock_does(self, bench: Bench) -> None:
        queue = bench.open()
        last = datetime.max.replace(tzinfo=UTC)
        queue.enqueue(Job(id="a", run_at=last, deadline=last))
        bench.clock.step(HOUR)
        bench.clock.advance(1.0)
        found = queue.find("a")
        assert found is not None
        assert (found.state, found.run_at, found.deadline) == (State.DELAYED, last, last)

    @pytest.mark.parametrize("step", [-HOUR, 0.0, HOUR], ids=["back", "none", "forth"])
    def test_the_first_moment_of_the_calendar_poisons_nothing(self, bench: Bench, step: float) -> None:
        queue = bench.open()
        first = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
        queue.enqueue(Job(id="old", enqueued_at=first))
        queue.enqueue(Job(id="late", deadline=first))
        queue.enqueue(Job(id="next"))
        bench.clock.step(step)
        bench.clock.advance(1.0)
        assert drain(queue) == ["old", "next"]
        assert [job.id for job in queue.dead()] == ["late"]

    # Deadlines

    def test_a_job_may_start_at_exactly_its_deadline_and_not_after(self, bench: Bench) -> None:
        queue = bench.open()
        deadline = bench.clock.now() + timedelta(seconds=5)
        queue.enqueue_many([Job(id="a", deadline=deadline), Job(id="b", deadline=deadline)])
        bench.clock.advance(5.0)
        held = lease(queue)
        assert (held.id, held.deadline) == ("a", deadline)
        bench.clock.advance(0.000001)
        assert queue.dequeue(timeout=0) is None
        (dead,) = queue.dead()
        assert (dead.id, dead.attempt) == ("b", 0)
        assert "deadline" in (dead.last_error or "")
        assert (queue.stats().deadline_missed, queue.stats().dead_total) == (1, 1)
        queue.ack(held)

    def test_a_missed_deadline_may_drop_instead_counted_all_the_same(self, bench: Bench) -> None:
        queue = bench.open(deadline_to_dead=False)
        queue.enqueue_many([Job(id="a", deadline=bench.clock.now()), Job(id="b")])
        bench.clock.advance(1.0)
        assert lease(queue).id == "b"
        figures = queue.stats()
        assert (figures.deadline_missed, figures.dropped, figures.dead) == (1, 1, 0)
        queue.enqueue(Job(id="a"))

    def test_a_batch_passes_over_those_that_are_too_late(self, bench: Bench) -> None:
        queue = bench.open()
        past = bench.clock.now() - timedelta(seconds=1)
        queue.enqueue_many([Job(id=f"{number}", deadline=past if number % 2 else None) for number in range(10)])
        assert [job.id for job in queue.dequeue_many(5)] == ["0", "2", "4", "6", "8"]
        assert queue.stats().dead == 5 - (queue.stats().ready)

    def test_a_retry_after_the_deadline_is_too_late(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a", deadline=bench.clock.now()))
        queue.nack(lease(queue), delay=1.0)
        bench.clock.advance(1.0)
        assert queue.dequeue(timeout=0) is None
        assert queue.dead()[0].attempt == 1

    def test_a_replayed_job_runs_although_its_deadline_has_passed(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a", deadline=bench.clock.now()))
        bench.clock.advance(1.0)
        assert queue.dequeue(timeout=0) is None
        assert queue.replay() == 1
        assert drain(queue) == ["a"]

    # The wall clock steps

    @pytest.mark.parametrize("step", [-HOUR, HOUR], ids=["back", "forth"])
    def test_a_step_moves_no_lease_no_delay_and_no_age(self, bench: Bench, step: float) -> None:
        queue = bench.open(lease=30.0)
        queue.enqueue_many([Job(id="leased"), Job(id="retried"), Job(id="ready"), Job(id="delayed", delay=20.0)])
        held, retried = queue.dequeue_many(2)
        queue.nack(retried, delay=20.0)
        bench.clock.step(step)
        bench.clock.advance(19.999999)
        figures = queue.stats()
        assert (figures.ready, figures.delayed, figures.inflight, figures.oldest_ready) == (1, 2, 1, 19.999999)
        bench.clock.advance(0.000001)
        assert queue.stats().delayed == 0
        bench.clock.advance(9.999999)
        assert queue.stats().expired_leases == 0
        extended = queue.extend(held, 30.0)
        assert extended.lease_until == bench.clock.now() + timedelta(seconds=30)
        queue.ack(held)

    @pytest.mark.parametrize("step", [-HOUR, HOUR], ids=["back", "forth"])
    def test_run_at_follows_the_calendar(self, bench: Bench, step: float) -> None:
        queue = bench.open()
        moment = bench.clock.now() + timedelta(hours=2)
        queue.enqueue(Job(id="a", run_at=moment))
        bench.clock.step(step)
        bench.clock.advance(1.0)
        assert queue.stats().delayed == 1
        bench.clock.advance(2 * HOUR - step - 1.000001)
        assert queue.dequeue(timeout=0) is None
        bench.clock.advance(0.000001)
        held = lease(queue)
        assert held.run_at == moment == bench.clock.now()

    def test_a_step_past_run_at_makes_it_ready(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a", run_at=bench.clock.now() + timedelta(minutes=30)))
        bench.clock.step(HOUR)
        bench.clock.advance(1.0)
        assert drain(queue) == ["a"]

    @pytest.mark.parametrize("step", [-HOUR, HOUR], ids=["back", "forth"])
    def test_run_at_is_right_also_straight_after_a_step(self, bench: Bench, step: float) -> None:
        queue = bench.open()
        queue.stats()
        bench.clock.step(step)
        moment = bench.clock.now() + timedelta(seconds=60)
        queue.enqueue(Job(id="a", run_at=moment))
        bench.clock.advance(59.999999)
        assert queue.dequeue(timeout=0) is None
        bench.clock.advance(0.000001)
        assert lease(queue).run_at == moment

    @pytest.mark.parametrize("step", [-HOUR, HOUR], ids=["back", "forth"])
    def test_a_deadline_is_right_also_straight_after_a_step(self, bench: Bench, step: float) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a", deadline=bench.clock.now() + timedelta(minutes=30)))
        bench.clock.step(step)
        taken = queue.dequeue(timeout=0)
        assert (taken is None) == (step > 0)

    def test_nothing_fires_twice_when_the_calendar_goes_back_over_its_moment(self, bench: Bench) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a", run_at=bench.clock.now() + timedelta(seconds=10)))
        bench.clock.advance(10.0)
        held = lease(queue)
        bench.clock.step(-HOUR)
        bench.clock.advance(1.0)
        assert queue.dequeue(timeout=0) is None
        queue.nack(held)
        assert lease(queue).attempt == 2

    @pytest.mark.parametrize("step", [-HOUR, HOUR], ids=["back", "forth"])
    def test_a_job_enqueued_after_a_step_starts_at_once_and_shows_todays_calendar(
        self, bench: Bench, step: float
    ) -> None:
        queue = bench.open()
        queue.stats()
        bench.clock.step(step)
        bench.clock.advance(1.0)
        queue.enqueue(Job(id="a"))
        held = lease(queue)
        assert held.enqueued_at == held.run_at == bench.clock.now()

    def test_a_long_poll_notices_that_the_calendar_was_moved(self, bench: Bench) -> None:
        queue = bench.quiet()
        queue.enqueue(Job(id="a", run_at=bench.clock.now() + timedelta(hours=2)))
        (poll,) = bench.waiters(1, queue, timeout=3 * HOUR)
        bench.clock.step(2 * HOUR)
        for _ in range(4):
            bench.clock.advance(WATCH / 4)
            if not poll.done():
                bench.settle()
        taken = bench.result(poll)
        assert taken is not None
        assert taken.id == "a"
