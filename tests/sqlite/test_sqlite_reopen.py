"""What survives the end of every process, and what two handles, two queues and two clocks make of one file."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import raw
from sqlite_files import drain, lease, open_at

from headrace.errors import LeaseLost
from headrace.job import Job
from headrace.queue import Queue
from headrace.testing import VirtualClock

Open = Callable[..., Queue]


class Booted(VirtualClock):
    """The clock of one boot of a machine: its steady reading began at the boot, from ``origin``."""

    def __init__(self, start: datetime, boot: str, origin: int) -> None:
        super().__init__(start)
        self.boot = boot
        self._offset = origin - super().steady()

    def steady(self) -> int:
        return super().steady() + self._offset


def test_attempts_errors_and_first_enqueue_times_survive(opened: Open) -> None:
    clock = VirtualClock()
    queue = opened(clock=clock)
    first = clock.now()
    queue.enqueue(Job(b"\x00\xff payload", "a", priority=7, deadline=first + timedelta(days=1), max_attempts=9))
    clock.advance(1)
    queue.nack(lease(queue), delay=10.0, error="the reason")
    queue.close()
    clock.advance(9.999999)
    again = opened(clock=clock)
    assert again.dequeue(timeout=0) is None
    clock.advance(0.000001)
    job = lease(again)
    assert (job.payload, job.id, job.priority, job.max_attempts) == (b"\x00\xff payload", "a", 7, 9)
    assert (job.attempt, job.last_error) == (2, "the reason")
    assert (job.enqueued_at, job.run_at) == (first, first + timedelta(seconds=11))
    assert job.deadline == first + timedelta(days=1)


def test_a_lease_survives_the_handle_that_took_it(opened: Open) -> None:
    clock = VirtualClock()
    queue = opened(clock=clock, lease=30.0)
    queue.enqueue(Job(id="a"))
    held = lease(queue)
    queue.close()
    again = opened(clock=clock)
    clock.advance(29.999999)
    assert again.dequeue(timeout=0) is None
    again.extend(held, 1.0)
    again.ack(held)
    assert again.stats().acked == 1


def test_fences_never_go_back(opened: Open) -> None:
    """I7: not over restarts, nor when the file holds no job at all."""
    fences = []
    for _ in range(4):
        queue = opened()
        queue.enqueue(Job(id="a"))
        for _ in range(2):
            job = lease(queue)
            fences.append(job.fence)
            queue.release(job)
        queue.ack(lease(queue))
        queue.close()
    assert fences == sorted(set(fences))


def test_a_pause_survives(opened: Open) -> None:
    queue = opened()
    queue.enqueue(Job(id="a"))
    queue.pause()
    queue.close()
    again = opened()
    assert again.stats().paused
    assert again.dequeue(timeout=0) is None
    again.resume()
    assert lease(again).id == "a"


def test_the_figures_survive(opened: Open) -> None:
    clock = VirtualClock()
    queue = opened(clock=clock, max_attempts=1)
    queue.enqueue_many([Job(id=f"job{n}") for n in range(5)])
    queue.enqueue(Job(id="late", delay=9.0))
    queue.nack(lease(queue))
    held = lease(queue)
    queue.ack(held)
    with pytest.raises(LeaseLost):
        queue.ack(held)
    queue.cancel("job4")
    clock.advance(3)
    figures = queue.stats()
    assert figures.oldest_ready == 3.0
    queue.close()
    assert opened(clock=clock, max_attempts=1).stats() == figures


def test_a_closed_handle_keeps_what_is_not_due(opened: Open) -> None:
    queue = opened()
    queue.enqueue(Job(id="late", delay=3600.0))
    queue.close()
    assert opened().stats().delayed == 1


def test_two_handles_in_one_process_are_one_queue(opened: Open) -> None:
    here, there = opened(), opened()
    here.enqueue(Job(id="a"))
    held = lease(there)
    assert here.stats().inflight == 1
    here.ack(held)
    with pytest.raises(LeaseLost):
        there.ack(held)
    assert here.stats() == there.stats()
    here.close()
    there.enqueue(Job(id="b"))
    assert lease(there).id == "b"


def test_two_queues_in_one_file_do_not_see_each_other(opened: Open) -> None:
    mail, images = opened(queue="mail"), opened(queue="images")
    mail.enqueue(Job(id="same", payload=b"mail"))
    images.enqueue(Job(id="same", payload=b"image"))
    mail.pause()
    assert lease(images).payload == b"image"
    mail.resume()
    assert mail.cancel("same") is True
    assert mail.cancel("same") is False
    assert mail.find("same") is None
    assert (mail.stats().size, images.stats().inflight) == (0, 1)
    images.bury(_held(images), error="no")
    assert (mail.dead(), len(images.dead()), mail.replay()) == ([], 1, 0)
    assert mail.find("same") is None
    assert images.replay() == 1


def _held(queue: Queue) -> Job:
    """A new lease on the job in flight."""
    found = queue.find("same")
    assert found is not None
    return found


@pytest.mark.parametrize("settle", ["ack", "nack", "release", "bury", "cancel"])
def test_the_token_of_another_queue_is_refused(opened: Open, tmp_path: Path, settle: str) -> None:
    """Of the same file, and of another file in which all numbers are the same."""
    mine, beside = opened(queue="mine"), opened(queue="beside")
    with open_at(tmp_path / "other.sqlite", queue="mine") as elsewhere:
        for queue in (mine, beside, elsewhere):
            queue.enqueue(Job(id="a"))
        held = [lease(queue) for queue in (mine, beside, elsewhere)]
        assert {job.fence for job in held} == {1}
        for job in held[1:]:
            with pytest.raises(LeaseLost):
                getattr(mine, settle)(job)
        assert [job.token for job in mine.extend_many(held, 5.0)] == [held[0].token]
        stats = mine.stats()
        assert (stats.inflight, stats.ack_too_late) == (1, 2)


def test_a_lease_keeps_its_length_over_a_reboot(opened: Open) -> None:
    """The steady clock began anew; the calendar tells how long the machine was away."""
    start = datetime(2026, 3, 1, tzinfo=UTC)
    before = Booted(start, "boot 1", origin=5_000_000_000)
    queue = opened(clock=before, lease=30.0)
    queue.enqueue_many([Job(id="leased"), Job(id="late", delay=60.0)])
    held = lease(queue)
    queue.close()
    after = Booted(start + timedelta(seconds=10), "boot 2", origin=17)
    again = opened(clock=after)
    after.advance(19.999999)
    assert again.dequeue(timeout=0) is None
    after.advance(0.000001)
    job = lease(again)
    assert (job.id, job.attempt, job.fence > held.fence) == ("leased", 2, True)
    assert job.enqueued_at == start
    with pytest.raises(LeaseLost):
        again.ack(held)
    after.advance(29.999999)
    assert again.stats().delayed == 1
    after.advance(0.000001)
    assert again.find("late") == lease_free(again, "late", start + timedelta(seconds=60))


def lease_free(queue: Queue, id: str, run_at: datetime) -> Job | None:
    """The waiting job, if it is one whose time has come at ``run_at``."""
    found = queue.find(id)
    return found if found is not None and found.state == "ready" and found.run_at == run_at else None


def test_a_token_is_good_over_a_reboot(opened: Open) -> None:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    queue = opened(clock=Booted(start, "boot 1", origin=5_000_000_000))
    queue.enqueue(Job(id="a"))
    held = lease(queue)
    queue.close()
    again = opened(clock=Booted(start + timedelta(seconds=1), "boot 2", origin=0))
    again.ack(held)
    assert again.stats().acked == 1


def test_a_calendar_step_is_taken_once_by_two_handles(
    opened: Open, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """F10: no lease ends by it, no delay either; what was asked for by calendar follows it. Forth and back."""
    caplog.set_level(logging.ERROR)
    clock = VirtualClock()
    here, there = opened(clock=clock, lease=30.0), opened(clock=clock, lease=30.0)
    here.enqueue_many([Job(id="leased"), Job(id="late", delay=60.0)])
    here.enqueue(Job(id="by calendar", run_at=clock.now() + timedelta(hours=1)))
    held = lease(there)
    for step in (3500.0, -3500.0, -7200.0, 7200.0, 3600.0):
        clock.step(step)
        clock.advance(1.0)
        for queue in (here, there):
            queue.extend(held, 30.0)
            stats = queue.stats()
            assert stats.expired_leases == 0
            assert stats.inflight == 1
        if step != 3600.0:
            assert stats.delayed == 2
    assert raw.query(path, "SELECT skew FROM headrace_clock") == [(3_600_000_000,)]
    assert lease(here).id == "by calendar"
    clock.advance(54.999999)
    assert there.find("late") is not None
    assert there.stats().delayed == 1
    clock.advance(0.000001)
    assert there.stats().delayed == 0


def test_an_idle_queue_follows_the_calendar(opened: Open) -> None:
    """F10: nobody writes, everybody only asks whether there is something."""
    clock = VirtualClock()
    queue = opened(clock=clock)
    queue.enqueue(Job(id="a", run_at=clock.now() + timedelta(hours=1)))
    clock.step(7200.0)
    clock.advance(1)
    assert lease(queue).id == "a"


def test_a_handle_with_less_room_does_not_lose_what_another_let_in(opened: Open) -> None:
    wide, narrow = opened(capacity=100), opened(capacity=2)
    wide.enqueue_many([Job(id=f"job{n}") for n in range(10)])
    stats = narrow.stats()
    assert (stats.ready, stats.capacity) == (10, 2)
    assert [job.id for job in drain(narrow)] == [f"job{n}" for n in range(10)]
