"""What the contract cannot see of the core in memory: what it keeps alive, how its lines stay small, and how it hands
over what falls due by the thousand."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from headrace.chosen import built, module
from headrace.job import Job
from headrace.overflow import DropOldest, Reject
from headrace.settings import Settings

DAY = 86_400_000_000
READY = 1


class Lab:
    """Cores of one kind, and records to put into them."""

    def __init__(self, kind: str) -> None:
        self._core = module("memory._core", kind).Core
        self.record = module("record", kind).Record

        class Kept(self.record):  # type: ignore[misc, name-defined]  # which one is known at run time
            """A record that can be watched."""

            __slots__ = ("__weakref__",)

        self._kept = Kept

    def core(self, **given: object) -> Any:
        return self._core(Settings.make(**{"capacity": 1_000_000, **given}), salt=0)

    def put(self, core: Any, id: str, now: int = 0, due: int = 0, **given: int) -> weakref.ref[Any]:
        record = self._kept(id, b"x" * 1000, given.get("priority", 0), given.get("max_attempts", 5), now, due)
        core.put([record], Reject(), now)
        return weakref.ref(record)


@pytest.fixture(params=built())
def lab(request: pytest.FixtureRequest) -> Lab:
    return Lab(request.param)


ENDS: dict[str, Callable[[Any, Job], object]] = {
    "ack": lambda core, job: core.ack(job, 0),
    "ack of one": lambda core, job: core.ack_one(job, 0),
    "abandon": lambda core, job: core.abandon(job, 0),
    "bury where none are kept": lambda core, job: core.bury(job, "why", 0),
    "bury and take": lambda core, job: (core.bury(job, "why", 0), core.take_dead(1, 0)),
    "cancel and release": lambda core, job: (core.cancel(job.id, 0), core.release(job, 0, 0)),
    "release and cancel": lambda core, job: (core.release(job, 5, 0), core.cancel(job.id, 0)),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_a_job_that_is_gone_is_kept_alive_by_nothing(lab: Lab, end: Callable[[Any, Job], object]) -> None:
    kept = lab.core(dead_capacity=1 if end is ENDS["bury and take"] else 0)
    gone = lab.put(kept, "a")
    (job,) = kept.take(1, 0)
    end(kept, job)
    gc.collect()
    assert gone() is None
    assert not kept.jobs
    assert not kept.dead


def test_what_is_handed_out_is_not_the_record_itself(lab: Lab) -> None:
    kept = lab.core()
    lab.put(kept, "a")
    (job,) = kept.take(1, 0)
    kept.jobs["a"].attempt = 9
    assert job.attempt == 1


def longest(kept: Any) -> int:
    """The entries of the longest line, holes and tombstones included."""
    heaps = (kept.ready.waiting, kept.ready.ages, kept.leases.others)
    fifos = (*kept.ready.buckets, kept.leases.line)
    return max(kept.delayed.count, *(len(heap.entries) for heap in heaps), *(len(fifo.items) for fifo in fifos))


def test_lines_stay_small_when_many_jobs_pass_through(lab: Lab) -> None:
    kept = lab.core()
    for number in range(5000):
        lab.put(kept, f"{number}", due=DAY if number % 3 == 0 else 0)
        kept.cancel(f"{number}", 0) if number % 3 == 0 else kept.ack(kept.take(1, 0)[0], 0)
    assert longest(kept) <= 600


def test_lines_stay_small_behind_one_lease_that_does_not_end(lab: Lab) -> None:
    kept = lab.core()
    for number in range(5000):
        lab.put(kept, f"{number}")
        (job,) = kept.take(1, 0)
        if number:
            kept.ack(job, 0)
    assert longest(kept) <= 600


def test_lines_stay_small_when_one_job_comes_back_for_ever(lab: Lab) -> None:
    kept = lab.core()
    lab.put(kept, "a", max_attempts=1_000_000)
    for now in range(3000):
        (job,) = kept.take(1, now)
        kept.extend(job, 1 + now % 7, 1, now)
        kept.extend(job, DAY, 1, now)
        kept.nack(job, now % 2, None, now)
        kept.promote(now + 1)
    assert longest(kept) <= 600


def test_a_step_of_the_calendar_forth_and_back_leaves_one_of_each(lab: Lab) -> None:
    kept = lab.core()
    record = lab.record("a", b"", 0, 5, 0, DAY, True)
    kept.put([record, lab.record("b", b"", 0, 5, 0, DAY)], Reject(), 0)
    for change in (DAY // 2, -DAY // 2) * 100:
        kept.step(change, 0)
    figures = kept.stats(DAY - 1)
    assert (figures.ready, figures.delayed) == (0, 2)
    assert [job.id for job in kept.take(9, DAY)] == ["a", "b"]
    assert kept.stats(DAY).delayed == 0


def test_the_first_dead_letter_is_found_without_walking_over_the_taken(lab: Lab) -> None:
    kept = lab.core()
    for number in range(200):
        lab.put(kept, f"{number}")
        kept.bury(kept.take(1, 0)[0], "why", 0)
    assert len(kept.take_dead(150, 0)) == 150
    assert [job.id for job in kept.look_dead(1, 0, 0)] == ["150"]
    assert kept.dead.first == 151


def test_a_batch_of_which_one_id_is_taken_leaves_nothing_behind(lab: Lab) -> None:
    kept = lab.core()
    lab.put(kept, "c")
    assert not kept.put_many([lab.record(id, b"", 0, 5, 0, due) for id, due in zip("abc", (0, DAY, 0), strict=True)], 0)
    figures = kept.stats(0)
    assert (list(kept.jobs), figures.ready, figures.delayed, figures.enqueued) == (["c"], 1, 0, 1)


# What falls due by the thousand

MANY = 5000


def crowd(lab: Lab, spread: int, **given: object) -> tuple[Any, dict[str, tuple[int, int]]]:
    """A core with many delayed jobs, due within ``spread``; the turn of each."""
    kept = lab.core(**given)
    dice = random.Random(spread)
    turns = {}
    for number in range(MANY):
        priority = dice.randrange(5)
        lab.put(kept, f"{number}", due=DAY + dice.randrange(spread), priority=priority)
        turns[f"{number}"] = (-priority, number)
    return kept, turns


@pytest.mark.parametrize("spread", [1, 1000, DAY])
def test_a_crowd_falls_due_in_one_call_that_touches_few_of_it(lab: Lab, spread: int) -> None:
    kept, _ = crowd(lab, spread)
    figures = kept.stats(3 * DAY)
    assert (figures.ready, figures.delayed, figures.oldest_ready) == (MANY, 0, 3 * 86_400.0)
    assert sum(record.place == READY for record in kept.jobs.values()) <= 100
    assert len(kept.ready.late) <= MANY // 100


@pytest.mark.parametrize("spread", [1, 1000, DAY])
def test_a_crowd_comes_out_in_order_among_the_others(lab: Lab, spread: int) -> None:
    kept, turns = crowd(lab, spread)
    lab.put(kept, "early", now=1, priority=2)
    kept.promote(3 * DAY)
    lab.put(kept, "late", now=3 * DAY, priority=2)
    turns |= {"early": (-2, MANY), "late": (-2, MANY + 1)}
    (back,) = kept.take(1, 3 * DAY)
    kept.release(back, 0, 3 * DAY)
    out = [job.id for job in kept.take(MANY + 9, 3 * DAY)]
    assert out == sorted(turns, key=lambda id: turns[id])


def test_half_of_a_crowd_is_due_when_its_time_has_come_and_no_more(lab: Lab) -> None:
    kept, _ = crowd(lab, 1000)
    dues = sorted(record.due for record in kept.jobs.values())
    for now in (dues[0] - 1, dues[0], dues[MANY // 2], dues[-1]):
        figures = kept.stats(now)
        due = sum(each <= now for each in dues)
        assert (figures.ready, figures.delayed) == (due, MANY - due)


def test_one_of_a_crowd_is_found_cancelled_and_dropped_like_any_other(lab: Lab) -> None:
    kept, turns = crowd(lab, 1000, capacity=MANY)
    for name in ("7", "4999", "2500"):
        found = kept.find(name, 3 * DAY)
        assert found.state == "ready"
        assert kept.cancel(name, 3 * DAY)
        assert kept.find(name, 3 * DAY) is None
        del turns[name]
    newcomers = [lab.record(f"new {number}", b"", 9, 5, 3 * DAY, 3 * DAY) for number in range(103)]
    kept.put(newcomers, DropOldest(), 3 * DAY)
    for name in [f"{number}" for number in range(101) if number != 7]:  # those that were enqueued first
        del turns[name]
    assert kept.stats(3 * DAY).dropped == 100
    assert not kept.delayed.blocks
    out = [job.id for job in kept.take(MANY, 3 * DAY)]
    assert out[:103] == [record.id for record in newcomers]
    assert out[103:] == sorted(turns, key=lambda id: turns[id])


def test_more_priorities_than_lines_are_handed_out_in_order_all_the_same(lab: Lab) -> None:
    kept = lab.core()
    numbers = list(range(-300, 300))
    random.Random(3).shuffle(numbers)
    for number in numbers:
        lab.put(kept, f"{number}", priority=number)
    assert len(kept.ready.buckets) < 100
    assert kept.stats(5_000_000).oldest_ready == 5.0
    assert [job.priority for job in kept.take(999, 0)] == sorted(numbers, reverse=True)


# What else the contract reaches through one core alone


@pytest.mark.parametrize("ending", ["done", "cancelled", "there already", "lost"])
def test_a_job_that_is_forwarded_leaves_one_core_and_enters_the_other(lab: Lab, ending: str) -> None:
    here, there = lab.core(), lab.core()
    lab.put(here, "a")
    (job,) = here.take(1, 0)
    if ending == "cancelled":
        here.cancel("a", 0)
    elif ending == "there already":
        lab.put(there, "a")
    elif ending == "lost":
        here.ack(job, 0)
    assert here.forward(job, 5, there, 7) == (ending != "lost")
    left, come = here.stats(5), there.stats(7)
    assert (left.inflight, left.acked, left.cancelled) == (0, int(ending != "cancelled"), int(ending == "cancelled"))
    assert come.ready == int(ending in ("done", "there already"))


def test_the_next_lease_to_end_may_be_one_that_was_shortened(lab: Lab) -> None:
    kept = lab.core(lease=30.0)
    for id in ("a", "b"):
        lab.put(kept, id)
    jobs = kept.take(2, 0)
    kept.extend(jobs[1], 5, 1, 0)
    kept.promote(5)
    assert kept.stats(5).inflight == 1
    assert kept.soonest == 30_000_000


def test_the_oldest_of_many_delayed_ones_may_stand_in_any_block(lab: Lab) -> None:
    kept = lab.core(capacity=MANY)
    for number in range(MANY):
        lab.put(kept, f"{number}", now=MANY - abs(number - MANY // 2), due=DAY + number)
    newcomer = lab.record("new", b"", 0, 5, MANY, MANY)
    kept.put([newcomer], DropOldest(), MANY)
    assert "0" not in kept.jobs
    assert kept.stats(MANY).dropped == 1


def test_a_job_of_one_priority_alone_can_be_cancelled_while_it_is_ready(lab: Lab) -> None:
    kept = lab.core()
    for id, priority in (("a", 3), ("b", 3), ("c", 1)):
        lab.put(kept, id, priority=priority)
    (job,) = kept.take(1, 0)
    kept.nack(job, 0, None, 0)  # back in line out of order
    assert kept.cancel("a", 0)
    assert kept.cancel("b", 0)
    assert [each.id for each in kept.take(9, 0)] == ["c"]


def test_of_two_leases_that_were_changed_the_later_one_is_still_watched(lab: Lab) -> None:
    kept = lab.core(lease=30.0)
    for id in ("a", "b", "c"):
        lab.put(kept, id)
    jobs = kept.take(3, 0)
    kept.extend(jobs[1], 5, 1, 0)
    kept.extend(jobs[2], 9, 1, 0)
    kept.promote(5)
    assert kept.soonest == 9
    assert kept.stats(9).inflight == 1


def test_a_crowd_that_is_cancelled_one_by_one_leaves_nothing(lab: Lab) -> None:
    kept, turns = crowd(lab, 1000)
    kept.promote(3 * DAY)
    assert all(kept.cancel(id, 3 * DAY) for id in turns)
    assert kept.ready.late == []
    assert kept.take(1, 3 * DAY) == []
