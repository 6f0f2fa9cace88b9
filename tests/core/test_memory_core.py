"""What the contract cannot see of the core in memory: what it keeps alive, and how its lines stay small."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest

from headrace.job import Job
from headrace.memory._core import Core
from headrace.overflow import Reject
from headrace.record import Record
from headrace.settings import Settings

DAY = 86_400_000_000


class Kept(Record):
    """A record that can be watched."""

    __slots__ = ("__weakref__",)


def core(**given: object) -> Core:
    return Core(Settings.make(capacity=1_000_000, **given), salt=0)


def put(core: Core, id: str, now: int = 0, due: int = 0, **given: int) -> weakref.ref[Record]:
    record = Kept(id, b"x" * 1000, 0, given.get("max_attempts", 5), now, due)
    core.put([record], Reject(), now)
    return weakref.ref(record)


ENDS: dict[str, Callable[[Core, Job], object]] = {
    "ack": lambda core, job: core.ack(job, 0),
    "abandon": lambda core, job: core.abandon(job, 0),
    "bury where none are kept": lambda core, job: core.bury(job, "why", 0),
    "bury and take": lambda core, job: (core.bury(job, "why", 0), core.take_dead(1, 0)),
    "cancel and release": lambda core, job: (core.cancel(job.id, 0), core.release(job, 0, 0)),
    "release and cancel": lambda core, job: (core.release(job, 5, 0), core.cancel(job.id, 0)),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_a_job_that_is_gone_is_kept_alive_by_nothing(end: Callable[[Core, Job], object]) -> None:
    kept = core(dead_capacity=1 if end is ENDS["bury and take"] else 0)
    gone = put(kept, "a")
    (job,) = kept.take(1, 0)
    end(kept, job)
    gc.collect()
    assert gone() is None
    assert not kept.jobs
    assert not kept.dead


def test_what_is_handed_out_is_not_the_record_itself() -> None:
    kept = core()
    put(kept, "a")
    (job,) = kept.take(1, 0)
    kept.jobs["a"].attempt = 9
    assert job.attempt == 1


def test_lines_stay_small_when_many_jobs_pass_through() -> None:
    kept = core()
    for number in range(5000):
        put(kept, f"{number}", due=DAY if number % 3 == 0 else 0)
        kept.cancel(f"{number}", 0) if number % 3 == 0 else kept.ack(kept.take(1, 0)[0], 0)
    lines = (kept.waiting, kept.ages, kept.delayed, kept.delayed_ages, kept.leases)
    assert max(len(line) for line in lines) <= 130


def test_lines_stay_small_when_one_job_comes_back_for_ever() -> None:
    kept = core()
    put(kept, "a", max_attempts=1_000_000)
    for now in range(3000):
        (job,) = kept.take(1, now)
        kept.extend(job, 1 + now % 7, 1, now)
        kept.extend(job, DAY, 1, now)
        kept.nack(job, now % 2, None, now)
        kept.promote(now + 1)
    lines = (kept.waiting, kept.ages, kept.delayed, kept.delayed_ages, kept.leases)
    assert max(len(line) for line in lines) <= 130


def test_a_step_of_the_calendar_forth_and_back_leaves_one_of_each() -> None:
    kept = core()
    record = Record("a", b"", 0, 5, 0, DAY, True)
    kept.put([record, Record("b", b"", 0, 5, 0, DAY)], Reject(), 0)
    for change in (DAY // 2, -DAY // 2) * 100:
        kept.step(change)
    figures = kept.stats(DAY - 1)
    assert (figures.ready, figures.delayed) == (0, 2)
    assert [job.id for job in kept.take(9, DAY)] == ["a", "b"]
    assert kept.stats(DAY).delayed == 0


def test_the_first_dead_letter_is_found_without_walking_over_the_taken() -> None:
    kept = core()
    for number in range(200):
        put(kept, f"{number}")
        kept.bury(kept.take(1, 0)[0], "why", 0)
    assert len(kept.take_dead(150, 0)) == 150
    assert [job.id for job in kept.look_dead(1, 0, 0)] == ["150"]
    assert kept.dead.first == 151
