"""F26, F33, F37: odd names are refused, odd ids are data, odd moments are one moment or none, and nothing leaks."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from contextlib import closing
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import raw
from children import Child
from sqlite_files import drain, lease, open_at

from headrace.errors import ConfigError, InvalidJob, Unavailable
from headrace.job import Job
from headrace.testing import VirtualClock

ODD = [
    "x'; DROP TABLE canary;--",
    'a"b',
    "a-b.c",
    "$$",
    "%s",
    "%(x)s",
    "{0}",
    "back\\slash",
    "new\nline",
    "a\ttab",
    " ",
    "🦆 emoji",
    "\u202eright to left",
    "Ω" * 200,
    ":queue",
    "?",
]


@pytest.fixture
def canary(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE canary (song TEXT)")
    return path


@pytest.mark.parametrize("name", [*ODD, "", "1st", "a" * 64, "naïve", "a\0b"])
def test_an_odd_queue_name_is_refused_before_any_sql_runs(canary: Path, name: str) -> None:
    """F26."""
    before = raw.query(canary, "SELECT name FROM sqlite_schema")
    with pytest.raises(ConfigError, match=r"queue: .* is not a name"):
        open_at(canary, queue=name)
    assert raw.query(canary, "SELECT name FROM sqlite_schema") == before
    open_at(canary).close()


@pytest.mark.parametrize("name", ["select", "_", "A1", "a" * 63])
def test_an_identifier_is_a_queue_name_whatever_it_means_to_sql(path: Path, name: str) -> None:
    """F26."""
    with open_at(path, queue=name) as queue:
        queue.enqueue(Job(id="a"))
        assert lease(queue).queue == name


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_id_is_data_on_every_way(canary: Path, odd: str) -> None:
    """F26: stored and given back verbatim through the whole life cycle."""
    with open_at(canary, max_attempts=2) as queue:
        queue.enqueue(Job(odd.encode(), odd))
        found = queue.find(odd)
        assert found is not None
        assert found.id == odd
        job = lease(queue)
        assert (job.id, job.payload.decode()) == (odd, odd)
        queue.nack(queue.extend(job, 5.0), error=odd)
        queue.bury(lease(queue), error=odd)
        (dead,) = queue.dead()
        assert (dead.id, dead.last_error) == (odd, odd)
        assert queue.replay(ids=[odd]) == 1
        assert queue.cancel(odd) is True
    assert raw.query(canary, "SELECT count(*) FROM canary") == [(0,)]


@pytest.mark.parametrize("bad", ["", "a\0b", "\ud800", "x" * 256, 1, 1.0, True, None, b"a"])
def test_an_id_that_cannot_be_kept_is_refused_and_nothing_is_stored(path: Path, bad: Any) -> None:
    """F08, F26, F42: no conflation of 1, 1.0, True and "1" either."""
    with open_at(path) as queue:
        with pytest.raises(InvalidJob):
            queue.enqueue_many([Job(id="good"), Job(id=bad)])
        assert queue.stats().enqueued == 0


def test_ids_that_differ_by_unicode_normalisation_are_two(path: Path) -> None:
    """F08: the queue changes no text."""
    with open_at(path) as queue:
        queue.enqueue_many([Job(id="caf\u00e9"), Job(id="cafe\u0301")])
        assert [job.id for job in drain(queue)] == ["caf\u00e9", "cafe\u0301"]


def test_an_error_text_with_nul_or_surrogates_never_stops_a_nack(path: Path) -> None:
    """F42: a failure that cannot be written down is a failure all the same."""
    with open_at(path, max_attempts=3) as queue:
        queue.enqueue(Job(id="a"))
        for text in ("a\0b", "\ud800"):
            queue.nack(lease(queue), error=text)
        queue.bury(lease(queue), error=ValueError("x" * 1_000_000))
        (dead,) = queue.dead()
        assert dead.last_error is not None
        assert dead.last_error.isprintable() or "…" in dead.last_error
        assert len(dead.last_error) < 100_000


def _three_zones(path: Path) -> list[str]:
    """The same instant in three zones, under this process's own."""
    instant = datetime(2026, 7, 1, 12, tzinfo=UTC)
    spoken = [
        instant,
        instant.astimezone(timezone(timedelta(hours=9))),
        instant.astimezone(ZoneInfo("America/New_York")),
    ]
    with open_at(path, clock=VirtualClock()) as queue:
        for number, run_at in enumerate(spoken):
            queue.enqueue(Job(id=f"{os.environ['TZ']} {number}", run_at=run_at))
            with pytest.raises(InvalidJob, match="naive"):
                queue.enqueue(Job(run_at=datetime(2026, 7, 1, 12)))  # noqa: DTZ001 - that is the point
    return [row[0] for row in raw.query(path, "SELECT DISTINCT due FROM headrace_jobs")]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_one_instant_is_one_instant_in_every_zone(path: Path, zone: str) -> None:
    """F33: the zone of the process has no say."""

    def child() -> list[str]:
        os.environ["TZ"] = zone
        time.tzset()
        return _three_zones(path)

    assert Child(child).result() == [round(datetime(2026, 7, 1, 12, tzinfo=UTC).timestamp() * 1_000_000)]


@pytest.mark.parametrize("odd", [date(2026, 1, 1), 1, 1.5, "2026-01-01T00:00:00Z"])
def test_what_is_no_datetime_is_refused_as_run_at(path: Path, odd: Any) -> None:
    """F33."""
    with open_at(path) as queue, pytest.raises(InvalidJob, match="run_at"):
        queue.enqueue(Job(run_at=odd))


@pytest.mark.parametrize("delay", [-1, float("inf"), float("nan"), True, "5", 1e12, timedelta.max])
def test_a_delay_that_is_none_is_refused(path: Path, delay: Any) -> None:
    """F33, F43: SQLite would make NULL of NaN."""
    with open_at(path) as queue:
        with pytest.raises(InvalidJob, match="delay"):
            queue.enqueue(Job(delay=delay))
        assert queue.stats().enqueued == 0


def test_the_ends_of_the_calendar_are_moments_too(path: Path) -> None:
    """F33: the past means now, and the far future waits without breaking anything."""
    with open_at(path, clock=VirtualClock()) as queue:
        queue.enqueue(Job(id="first", run_at=datetime(1, 1, 1, tzinfo=UTC)))
        queue.enqueue(Job(id="last", run_at=datetime.max.replace(tzinfo=UTC)))
        with pytest.raises(InvalidJob, match="calendar"):
            queue.enqueue(Job(id="beyond", run_at=datetime.max.replace(tzinfo=timezone(timedelta(hours=-9)))))
        assert [job.id for job in drain(queue)] == ["first"]
        found = queue.find("last")
        assert found is not None
        assert found.run_at == datetime.max.replace(tzinfo=UTC)


def test_payloads_are_in_no_log_and_no_error(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """F37."""
    secret = b"hunter2"
    caplog.set_level(logging.DEBUG)
    said = []
    with open_at(path, busy_timeout=0.01, max_payload=100) as queue:
        queue.enqueue(Job(secret, "a"))
        for bad in (Job(secret, "a"), Job(secret * 100, "b"), Job(secret, "c", priority=1 << 70)):
            with pytest.raises(Exception, match="job") as caught:
                queue.enqueue(bad)
            said.append(str(caught.value))
        with closing(raw.connect(path)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable) as locked:
                queue.enqueue(Job(secret, "d"))
            said.append(str(locked.value))
        job = lease(queue)
        queue.bury(job, error="no")
        said += [repr(queue), str(queue.stats()), str(queue.dead()[0].last_error)]
    assert "hunter2" not in "\n".join([*said, caplog.text])
