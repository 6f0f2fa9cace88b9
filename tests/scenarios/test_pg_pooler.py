"""Workers whose way to the database leads through a pooler that shares sessions between transactions."""

from __future__ import annotations

from collections.abc import Callable

from kit import Stage
from pg_bouncer import Bouncer


def test_workers_behind_a_transaction_pooler_do_each_job_once_and_say_what_they_miss(
    dsn: str, stage_on: Callable[[str], Stage], bouncer: Callable[..., Bouncer]
) -> None:
    """F22. Three of them and their producer on two sessions; a listener with a way of its own misses nothing."""
    stage = stage_on(bouncer(dsn, size=2).dsn)
    ids = [f"job-{number:03}" for number in range(400)]
    stage.enqueue("in loop", "return", *ids[:300])
    stage.enqueue("in thread", "raise once", *ids[300:])
    workers = [stage.worker(workers=4) for _ in range(2)]
    stage.env["HEADRACE_URL"] = f"{stage.url}?direct={dsn}&application_name=direct"
    heard = stage.worker(workers=4)
    stats = stage.until_done(400)
    assert len(stage.lines("start")) == 500
    assert (stats.acked, stats.retried, stats.expired_leases, stats.dead_total) == (400, 100, 0, 0)
    for worker in workers:
        worker.says("behind a pooler that shares sessions")
    for worker in (*workers, heard):
        worker.process.terminate()
    for worker in (*workers, heard):
        assert worker.ends() == 0
        assert "Traceback" not in worker.output
    assert all(worker.output.count("behind a pooler") == 1 for worker in workers)
    assert "behind a pooler" not in heard.output
