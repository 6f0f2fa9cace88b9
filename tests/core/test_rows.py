"""Between a record and what stores on a disk keep: the same in both cores."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from headrace import Job, State
from headrace.chosen import built, module
from headrace.clock import FAR, SECOND, to_datetime, to_micros
from headrace.settings import Settings

NOW = to_micros(datetime(2026, 1, 1, tzinfo=UTC))
SKEW, SALT = 3600 * SECOND, 1 << 60
ROW = ("a", b"x", -5, 3, NOW, NOW, None, 2, 7, NOW + SECOND, None, 0, 99)
LATE = ("b", b"", 5, 1, NOW, NOW + SECOND, NOW + 2 * SECOND, 1, 8, NOW + SECOND, "why", 1, 100)


@pytest.fixture(params=built())
def core(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def jobs_of(core: str, *rows: tuple[Any, ...], state: State) -> list[Job]:
    jobs: list[Job] = module("record", core).jobs_of(rows, state, "q", SALT, SKEW)
    return jobs


def test_a_row_becomes_the_job_that_it_was(core: str) -> None:
    plain, late = jobs_of(core, ROW, LATE, state=State.INFLIGHT)
    assert (plain.id, plain.payload, plain.priority, plain.max_attempts, plain.attempt) == ("a", b"x", -5, 3, 2)
    assert (plain.queue, plain.state, plain.fence, plain.token, plain.ref) == ("q", State.INFLIGHT, 7, 7 + SALT, 99)
    assert plain.enqueued_at == plain.run_at == to_datetime(NOW + SKEW)
    assert (plain.deadline, plain.last_error, plain.cancelled) == (None, None, False)
    assert late.run_at == to_datetime(NOW + SECOND + SKEW)
    assert late.deadline == to_datetime(NOW + 2 * SECOND), "which is by calendar already"
    assert (late.last_error, late.cancelled) == ("why", True)


@pytest.mark.parametrize("state", State)
def test_its_last_moment_is_the_end_of_a_lease_or_a_death_or_nothing_to_be_shown(core: str, state: State) -> None:
    (job,) = jobs_of(core, ROW, state=state)
    moment = to_datetime(NOW + SECOND + SKEW)
    assert job.lease_until == (moment if state is State.INFLIGHT else None)
    assert job.died_at == (moment if state is State.DEAD else None)


def test_fresh_records_are_told_a_column_each(core: str) -> None:
    deadline, run_at = to_datetime(NOW + 9 * SECOND), to_datetime(NOW + 5 * SECOND)
    jobs = [Job(b"x", id="a", priority=4), Job(id="b", run_at=run_at, deadline=deadline, max_attempts=1)]
    admit = module("admit", core).admit
    records = [admit(job, Settings.make(max_attempts=3), NOW, 0) for job in jobs]
    assert [list(column) for column in module("record", core).columns_of(records)] == [
        ["a", "b"],
        [b"x", b""],
        [4, 0],
        [3, 1],
        [False, True],
        [NOW, NOW + 5 * SECOND],
        [FAR, NOW + 9 * SECOND],
        [NOW, NOW],
    ]
    assert all(type(value) is bool for value in module("record", core).columns_of(records)[4]), "not 0 and 1"
