"""What is kept for a while: done jobs where asked for, dead letters where not for ever."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pg_kit import cli, connected

import headrace
from headrace import ConfigError, Job, LeaseLost, Queue
from headrace.testing import VirtualClock

BATCH = "headrace.postgres.upkeep.PRUNE"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def opened(dsn: str, clock: VirtualClock) -> Callable[..., Queue]:
    return lambda **settings: headrace.connect(dsn, clock=clock, **settings)


def kept(dsn: str, table: str) -> list[str]:
    with connected(dsn) as connection:
        query = f"SELECT id FROM headrace.{table} ORDER BY id"  # noqa: S608  # a name of ours
        return [row[0] for row in connection.execute(query.encode())]


def done(queue: Queue, *ids: str) -> None:
    queue.enqueue_many([Job(id=id, payload=id.encode()) for id in ids])
    queue.ack_many(queue.dequeue_many(len(ids), 0))


def buried(queue: Queue, *ids: str) -> None:
    queue.enqueue_many([Job(id=id) for id in ids])
    for job in queue.dequeue_many(len(ids), 0):
        queue.bury(job, "enough")


def test_a_done_job_is_in_the_archive_and_its_id_is_free(dsn: str, opened: Any) -> None:
    with opened(archive=60) as queue:
        done(queue, "a", "b")
        assert kept(dsn, "archive") == ["a", "b"]
        assert queue.find("a") is None
        done(queue, "a")
        assert kept(dsn, "archive") == ["a", "a", "b"]
        assert (queue.stats().acked, queue.stats().unaccounted) == (3, 0)


def test_only_done_jobs_are_archived_each_once(dsn: str, opened: Any, clock: VirtualClock) -> None:
    with opened(archive=600, lease=10) as queue:
        queue.enqueue_many([Job(id=id) for id in "abcd"])
        a, b, c, d = queue.dequeue_many(4, 0)
        queue.ack(a)
        queue.bury(b, "enough")
        queue.release(c)
        with pytest.raises(LeaseLost):
            queue.ack_many([a, a])
        clock.advance(10)
        with pytest.raises(LeaseLost):
            queue.ack(d)
        assert kept(dsn, "archive") == ["a"]
        assert queue.stats().unaccounted == 0


def test_without_the_setting_nothing_is_archived(dsn: str, opened: Any) -> None:
    with opened() as queue, opened(queue="other", archive=0) as other:
        done(queue, "a")
        done(other, "b")
    assert kept(dsn, "archive") == []


def test_the_archive_is_pruned_at_its_age_in_batches(
    dsn: str, opened: Any, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BATCH, 2)
    with opened(archive=60) as queue, opened(queue="other", archive=600) as other:
        done(other, "theirs")
        done(queue, "a", "b", "c", "d", "e")
        clock.advance(1)
        done(queue, "f")
        clock.advance(58.999999)
        assert queue.dequeue(0) is None
        assert len(kept(dsn, "archive")) == 7
        clock.advance(0.5)  # a look at the clock once a second
        clock.advance(0.500001)
        assert queue.dequeue(0) is None
        assert kept(dsn, "archive") == ["theirs"]


def test_dead_letters_go_at_their_age_and_are_counted_as_dropped(
    dsn: str, opened: Any, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BATCH, 2)
    with opened(dead_keep=60) as queue:
        buried(queue, "a", "b", "c")
        clock.advance(30)
        buried(queue, "d")
        clock.advance(29.999999)
        assert queue.dequeue(0) is None
        assert kept(dsn, "dead") == ["a", "b", "c", "d"]
        clock.advance(1.000001)
        assert queue.dequeue(0) is None
        assert kept(dsn, "dead") == ["d"]
        stats = queue.stats()
        assert (stats.dead, stats.dropped, stats.dead_dropped, stats.unaccounted) == (1, 3, 0, 0)


def test_dead_letters_stay_where_no_age_is_given(dsn: str, opened: Any, clock: VirtualClock) -> None:
    with opened() as queue:
        buried(queue, "a")
        clock.advance(10 * 365 * 86_400)
        assert queue.dequeue(0) is None
        assert kept(dsn, "dead") == ["a"]


@pytest.mark.parametrize(
    ("name", "strangers"), [("archive", ["memory://", "sqlite:///x.db"]), ("dead_keep", ["memory://"])]
)
def test_the_ages_are_checked_and_unknown_where_nothing_is_kept(dsn: str, name: str, strangers: list[str]) -> None:
    for wrong in (-1, "soon", float("nan"), True):
        with pytest.raises(ConfigError, match=f"{name}: "):
            headrace.connect(dsn, **{name: wrong})
    headrace.connect(f"{dsn}?{name}=3600").close()
    for url in strangers:
        with pytest.raises(ConfigError, match=f"{name}: no such setting"):
            headrace.connect(url, **{name: 60})


def test_the_archive_command_shows_the_last_ones_first(dsn: str, opened: Any, clock: VirtualClock) -> None:
    with opened(archive=600, queue="mail") as queue:
        done(queue, "a")
        clock.advance(1)
        done(queue, "b")
    shown = json.loads(cli("archive", "--json", "--url", dsn).stdout)
    assert [each["id"] for each in shown] == ["b", "a"]
    assert (shown[0]["state"], shown[0]["attempt"], shown[0]["queue"]) == ("done", 1, "mail")
    assert shown[0]["done_at"] > shown[1]["done_at"]
    assert "payload_base64" not in shown[0]
    assert json.loads(cli("archive", "--json", "--payload", "a", "--url", dsn).stdout)[0]["payload_base64"] == "YQ=="
    assert cli("archive", "--limit", "1", "--url", dsn).stdout.count("1/5") == 1
    assert "nothing in the archive with that id" in cli("archive", "zz", "--url", dsn).stdout
    assert cli("archive", "--url", "memory://").exit_code == 1
