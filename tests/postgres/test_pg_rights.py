"""A user of the database who lacks a right: told at once, in words, and no lasting harm."""

from __future__ import annotations

import threading

import pytest
from pg_kit import connected, stranger

import headrace
from headrace import ConfigError, Job, Pool
from headrace.pool import waiting
from headrace.testing.clock import wait_until

GRANTS = """
GRANT USAGE ON SCHEMA headrace TO {name};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA headrace TO {name};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA headrace TO {name};
"""
"""As the page on PostgreSQL has them."""


def test_a_pool_whose_user_lost_a_right_says_so_once_and_goes_on_when_it_is_granted(
    dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(waiting, "REFUSED", 0.05)
    with headrace.connect(dsn) as owner, stranger(dsn) as (url, name), connected(dsn) as admin:
        owner.enqueue(Job(id="a"))
        admin.execute(GRANTS.format(name=name).encode())
        admin.execute(f"REVOKE UPDATE ON headrace.jobs FROM {name}".encode())
        with headrace.connect(url) as queue:
            pool = Pool(queue, lambda job: None, workers=1)
            running = threading.Thread(target=pool.run)
            running.start()
            wait_until(lambda: pool.health().reasons == ("fetching fails",))
            admin.execute(GRANTS.format(name=name).encode())
            wait_until(lambda: owner.stats().acked == 1)
            pool.stop()
            running.join()
    told = [record.getMessage() for record in caplog.records if "is refused, trying again" in record.getMessage()]
    assert len(told) == 1
    assert "this user may not do that (permission denied for table jobs): GRANT it" in told[0]


@pytest.mark.parametrize("call", ["enqueue", "stats", "nack", "replay", "pause"])
def test_a_call_without_the_right_to_it_is_refused_in_words_and_changes_nothing(dsn: str, call: str) -> None:
    with headrace.connect(dsn) as owner, stranger(dsn) as (url, name), connected(dsn) as admin:
        owner.enqueue(Job(id="a"))
        (job,) = owner.dequeue_many(1, 0)
        admin.execute(GRANTS.format(name=name).encode())
        with headrace.connect(url) as queue:
            before = owner.stats()
            for table in ("jobs", "dead", "deltas", "queues"):
                admin.execute(f"REVOKE INSERT, UPDATE, DELETE ON headrace.{table} FROM {name}".encode())
            admin.execute(f"REVOKE ALL ON headrace.deltas FROM {name}".encode())
            arguments = {"enqueue": (Job(id="b"),), "nack": (job,)}.get(call, ())
            with pytest.raises(ConfigError, match=r"this user may not do that \(permission denied for table"):
                getattr(queue, call)(*arguments)
        assert owner.stats() == before
