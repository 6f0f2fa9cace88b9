"""Time as the server tells it: what every queue goes by whose caller brings no clock of their own.

The rules are tested in virtual time, elsewhere. Here it is about who says what time it is, so moments are short and
real, and each is waited for by an event. ``there`` and ``here`` are handles that share nothing but the server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from pg_kit import connected, somebody_sleeps
from pg_url import url_of

from headrace import Job, LeaseLost, Queue, connect
from headrace.clock import SystemClock
from headrace.rules import EXPIRED
from headrace.testing.clock import wait_until

LIMIT = 20.0
SLACK = 0.005
"""Seconds by which two clocks of this machine may disagree over so short a time."""

Open = Callable[..., Queue]


@pytest.fixture
def opened(dsn: str) -> Iterator[Open]:
    made: list[Queue] = []

    def make(name: str, **settings: object) -> Queue:
        made.append(connect(url_of(dsn, application_name=name), **settings))
        return made[-1]

    yield make
    for queue in made:
        queue.close()


def next_of(queue: Queue) -> Job:
    begun = time.monotonic()
    job = queue.dequeue(LIMIT)
    assert job is not None
    assert time.monotonic() - begun < LIMIT, "found by the last look of who had waited in vain"
    return job


@pytest.mark.parametrize("asleep", [True, False])
def test_a_delayed_job_starts_at_its_moment_wherever_it_was_put_in(asleep: bool, dsn: str, opened: Open) -> None:
    """Also where a consumer sleeps already, and would look by itself only in a minute."""
    here, there = opened("here", poll=60), opened("there")
    here.stats()
    with ThreadPoolExecutor(1) as beside:
        if asleep:
            sleeping = beside.submit(next_of, here)
            wait_until(lambda: somebody_sleeps(dsn), LIMIT)
        begun = time.monotonic()
        there.enqueue(Job(id="later", delay=0.3))
        if not asleep:
            assert there.dequeue(0) is None
            sleeping = beside.submit(next_of, here)
        job = sleeping.result(LIMIT)
    assert time.monotonic() - begun >= 0.3 - SLACK
    assert job.id == "later"
    here.ack(job)


def test_a_job_for_a_moment_of_the_calendar_starts_then(opened: Open) -> None:
    here = opened("here", poll=60)
    moment = datetime.now(UTC) + timedelta(seconds=0.3)
    here.enqueue(Job(run_at=moment))
    here.enqueue(Job(id="past", run_at=moment - timedelta(days=1)))
    assert next_of(here).id == "past"
    next_of(here)
    assert datetime.now(UTC) >= moment - timedelta(seconds=SLACK)


def test_a_lease_ends_by_itself_and_the_job_comes_again_to_whoever_waits(opened: Open) -> None:
    """F01, F02. With nobody to look for it but a sleeper who has never seen it."""
    here, there = opened("here", poll=0.2), opened("there", lease=0.4)
    with ThreadPoolExecutor(1) as beside:
        there.enqueue(Job(id="job", max_attempts=2))
        begun = time.monotonic()
        lost = next_of(there)
        again = beside.submit(next_of, here).result(LIMIT)
    assert time.monotonic() - begun >= 0.4 - SLACK
    assert (again.id, again.attempt, again.last_error) == ("job", 2, EXPIRED)
    for settle in (there.ack, there.nack, there.release, there.bury):
        with pytest.raises(LeaseLost):
            settle(lost)
    here.ack(again)
    assert (here.stats().acked, here.stats().expired_leases, here.stats().ack_too_late) == (1, 1, 4)


def test_who_leased_it_is_woken_by_the_end_of_the_lease_itself(opened: Open) -> None:
    here = opened("here", lease=0.3, poll=60)
    here.enqueue(Job(id="job", max_attempts=2))
    next_of(here)
    assert next_of(here).attempt == 2


def test_an_extended_lease_holds_from_now_on(opened: Open) -> None:
    here, there = opened("here", lease=0.3, poll=60), opened("there", poll=0.05)
    here.enqueue(Job(id="job"))
    job = next_of(here)
    begun = time.monotonic()
    for _ in range(4):
        job = here.extend(job, 0.3)
        assert there.dequeue(0.15) is None
    assert time.monotonic() - begun >= 0.6 - 4 * SLACK
    here.ack(job)
    assert here.stats().expired_leases == 0


def test_a_job_that_came_back_with_a_delay_waits_for_so_long(opened: Open) -> None:
    here = opened("here", poll=60)
    here.enqueue(Job(id="job"))
    begun = time.monotonic()
    here.nack(next_of(here), 0.3)
    assert here.stats().delayed == 1
    assert next_of(here).attempt == 2
    assert time.monotonic() - begun >= 0.3 - SLACK


def test_a_job_past_its_deadline_is_not_started(opened: Open) -> None:
    here = opened("here")
    here.enqueue(Job(id="late", deadline=datetime.now(UTC) + timedelta(seconds=0.1)))
    here.enqueue(Job(id="in time", deadline=datetime.now(UTC) + timedelta(days=1)))
    there = opened("there")
    end = time.monotonic() + 0.1 + SLACK
    wait_until(lambda: time.monotonic() > end, LIMIT)
    assert next_of(there).id == "in time"
    assert (there.stats().deadline_missed, there.stats().unaccounted) == (1, 0)


class Astray(SystemClock):
    """A machine whose clock is an hour wrong: no clock of a test's own, but the system's."""

    def wall(self) -> int:
        return super().wall() + 3600 * 1_000_000


def test_a_machine_whose_clock_is_wrong_changes_no_lease_and_no_delay(opened: Open) -> None:
    """F10. The server's clock is the one that all agree on."""
    here, astray = opened("here", poll=0.1), opened("astray", clock=Astray(), lease=5)
    begun = time.monotonic()
    astray.enqueue(Job(id="delayed", delay=0.3))
    astray.enqueue(Job(id="leased"))
    assert next_of(astray).id == "leased"
    assert next_of(here).id == "delayed"
    assert time.monotonic() - begun >= 0.3 - SLACK
    assert here.stats().expired_leases == 0


def test_the_zone_of_the_session_and_of_the_process_means_nothing(dsn: str, opened: Open) -> None:
    """F33."""
    with connected(dsn) as owner:
        owner.execute(f"ALTER DATABASE {owner.info.dbname} SET timezone = 'Asia/Tokyo'".encode())
    here = opened("here")
    moment = datetime.now(UTC) + timedelta(hours=1)
    here.enqueue(Job(id="job", run_at=moment))
    found = here.find("job")
    assert found is not None
    assert found.run_at is not None
    assert abs(found.run_at - moment) < timedelta(milliseconds=1)
