"""F26: names that become identifiers are checked before any SQL runs; all else is data, whatever it looks like."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pg_kit import connected
from pg_url import url_of

from headrace import ConfigError, Job, Queue, connect
from headrace.job import State
from headrace.testing import VirtualClock

ODD = [
    "x'; DROP TABLE canary;--",
    'a"b',
    "a-b.c",
    "$$",
    "%s",
    "%(x)s",
    "{0}",
    "{schema}",
    "back\\slash",
    "new\nline",
    "a\ttab",
    " ",
    "🦆 emoji",
    "\u202eright to left",
    "Ω" * 200,
]
RELATIONS = (
    "SELECT array_agg(oid::regclass::text ORDER BY oid) FROM pg_class WHERE relnamespace > 16384 OR relname = 'canary'"
)


@pytest.fixture
def canary(dsn: str) -> Iterator[str]:
    """A database with a table of somebody else, which is there in the end, as is nothing new."""
    connect(dsn).close()
    with connected(dsn) as owner:
        owner.execute("CREATE TABLE canary (song text)")
        before = owner.execute(RELATIONS).fetchone()
        yield dsn
        assert owner.execute(RELATIONS).fetchone() == before


@pytest.mark.parametrize("name", [*ODD, "", "1st", "a" * 64, "naïve", "a\0b"])
def test_an_odd_name_of_a_queue_or_a_schema_is_refused_before_any_sql_runs(canary: str, name: str) -> None:
    with pytest.raises(ConfigError, match=r"queue: .* is not a name"):
        connect(canary, queue=name)
    with pytest.raises(ConfigError, match=r"schema: "):
        connect(canary, schema=name)


@pytest.mark.parametrize("name", ["select", "_", "A1", "a" * 63])
def test_a_word_of_sql_is_a_name_of_a_queue(canary: str, name: str) -> None:
    with connect(canary, queue=name) as queue:
        queue.enqueue(Job(id="a"))
        assert next_of(queue).queue == name
        queue.pause()
        queue.resume()
        assert queue.stats().inflight == 1


def next_of(queue: Queue) -> Job:
    (job,) = queue.dequeue_many(1, 0)
    return job


def test_odd_ids_payloads_and_errors_are_data_on_every_way(canary: str) -> None:
    """Stored and given back as they were through the whole life of a job, the archive and a stranger's transaction
    included; so is the name under which a program connects."""
    clock = VirtualClock()
    with connect(url_of(canary, application_name=ODD[0]), max_attempts=2, archive=60, clock=clock) as queue:
        for odd in ODD:
            queue.enqueue(Job(odd.encode(), odd))
            found = queue.find(odd)
            assert found is not None
            assert (found.id, found.payload) == (odd, odd.encode())
            job = next_of(queue)
            queue.nack(queue.extend(job, 5.0), error=odd)
            job = next_of(queue)
            assert (job.id, job.last_error) == (odd, odd)
            queue.bury(job, error=odd)
            (dead,) = queue.dead()
            assert (dead.id, dead.last_error, dead.state) == (odd, odd, State.DEAD)
            assert queue.replay(ids=[odd]) == 1
            assert queue.cancel(odd)
            queue.enqueue(Job(id=odd))
            queue.ack(next_of(queue))
        stats = queue.stats()
        assert (stats.acked, stats.cancelled, stats.unaccounted) == (len(ODD), len(ODD), 0)
