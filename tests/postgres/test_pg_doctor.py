"""The doctor says what will hurt, and nothing where nothing will: each check by a table, and on a server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from pg_bouncer import Bouncer
from pg_kit import cli, connected, findings, stranger
from pg_server import PrivateServer

import headrace
from headrace import Job, Stats
from headrace.postgres import doctor
from headrace.postgres.figures import Figures, Holder, Queue, Server, Table
from headrace.sql.finding import Finding
from headrace.testing import VirtualClock

SERVER = Server(
    version=16, now=0, read_only=False, autovacuum=True, fsync=True, synchronous_commit="on",
    idle_in_transaction=60_000, max_connections=97, connections=5, sees_all=True,
)  # fmt: skip
HOLDER = Holder(kind="session", name="42", application="shop", user="ann", state="idle in transaction", age=1.0)
JOBS = Table("jobs", live=1_000, dead=10, analysed=True, size=1 << 20, options=["fillfactor=50"])
QUEUE = Queue(
    "mail", Stats(ready=3, enqueued=3), counted=(3, 0, 0, 0), oldest_dead=None, deltas=10, overdue=0.0, payload_p99=100,
    payload_max=200,
)  # fmt: skip
WELL = Figures(
    schema="headrace", database="shop", server=SERVER, skew=0.1, pooler=False, direct=False, holders=[HOLDER],
    tables=[JOBS], queues=[QUEUE],
)  # fmt: skip


WAITING: dict[str, Any] = {"stats": Stats(delayed=1, enqueued=1), "counted": (0, 1, 0, 0)}


def server(**changes: Any) -> Figures:
    return WELL._replace(server=SERVER._replace(**changes))


def holder(**changes: Any) -> Figures:
    return WELL._replace(holders=[HOLDER._replace(**changes)])


def table(**changes: Any) -> Figures:
    return WELL._replace(tables=[JOBS._replace(**changes)])


def queue(**changes: Any) -> Figures:
    return WELL._replace(queues=[QUEUE._replace(**changes)])


def stats(**changes: int) -> Figures:
    return queue(
        stats=Stats(**changes), counted=tuple(changes.get(each, 0) for each in ("ready", "delayed", "inflight", "dead"))
    )


def examined(figures: Figures) -> list[Finding]:
    return [found for check in doctor.checks() for found in check(figures)]


OFF = ["fillfactor=50", "autovacuum_enabled=false"]
SLOW = ["fillfactor=50", "autovacuum_vacuum_threshold=5000", "autovacuum_vacuum_scale_factor=0.01"]


@pytest.mark.parametrize(
    ("figures", "check", "serious", "cure"),
    [
        (server(version=12), "version", True, "upgrade"),
        (server(version=19), "version", False, "newer Headrace"),
        (server(read_only=True), "read_only", True, "target_session_attrs"),
        (server(fsync=False), "fsync", True, "ALTER SYSTEM SET fsync = on"),
        (server(synchronous_commit="off"), "synchronous_commit", False, "ALTER DATABASE shop RESET"),
        (server(autovacuum=False), "autovacuum", True, "ALTER SYSTEM SET autovacuum = on"),
        (table(options=OFF), "autovacuum", True, "ALTER TABLE headrace.jobs RESET (autovacuum_enabled)"),
        (table(dead=60_000, options=SLOW), "dead_rows", False, "VACUUM headrace.jobs"),
        (table(dead=2_000_000, options=SLOW), "dead_rows", True, "VACUUM headrace.jobs"),
        (table(dead=60_000, options=["fillfactor=50"]), "dead_rows", False, "VACUUM"),
        (holder(age=61.0), "horizon", False, "SELECT pg_terminate_backend(42)"),
        (holder(age=601.0), "horizon", True, "SELECT pg_terminate_backend(42)"),
        (holder(kind="prepared", name="tx1", age=61.0), "horizon", False, "ROLLBACK PREPARED 'tx1'"),
        (holder(kind="slot", name="copy", age=2e6), "horizon", False, "pg_drop_replication_slot('copy')"),
        (holder(kind="slot", name="copy", age=2e7), "horizon", True, "pg_drop_replication_slot('copy')"),
        (server(sees_all=False), "horizon", False, "GRANT pg_read_all_stats"),
        (server(idle_in_transaction=0), "idle_in_transaction", False, "ALTER DATABASE shop SET idle_in_transaction_"),
        (server(connections=80), "connections", False, "max_connections"),
        (server(connections=95), "connections", True, "max_connections"),
        (WELL._replace(pooler=True), "pooler", False, "direct='postgresql://"),
        (WELL._replace(skew=1.5), "clocks", False, "NTP"),
        (WELL._replace(skew=-31.0), "clocks", True, "NTP"),
        (table(live=20_000, analysed=False), "statistics", False, "ANALYZE headrace.jobs"),
        (table(options=None), "options", False, "ALTER TABLE headrace.jobs SET (fillfactor = 50)"),
        (table(live=100, size=100 << 20), "bloat", False, "VACUUM FULL headrace.jobs"),
        (stats(enqueued=5, ready=4), "unaccounted", True, "report"),
        (stats(enqueued=4, ready=5), "unaccounted", True, "report"),
        (stats(enqueued=1, acked=1, ack_too_late=1), "ack_too_late", False, "lease="),
        (stats(enqueued=990, acked=990, expired_leases=20), "leases", False, "lease="),
        (stats(enqueued=990, acked=990, expired_leases=20, ack_too_late=9), "leases", True, "lease="),
        (stats(enqueued=1, dead_dropped=1), "dead_dropped", True, "headrace dead list --queue mail"),
        (stats(enqueued=1, ready=1, paused=True), "paused", False, "headrace resume --queue mail"),
        (queue(counted=(2, 0, 0, 0)), "figures", True, "report"),
        (queue(oldest_dead=8 * 86_400.0), "dead_letters", False, "headrace dead list --queue mail"),
        (queue(payload_p99=70_000), "payloads", False, "max_payload="),
        (queue(overdue=61.0, **WAITING), "overdue", False, "headrace worker"),
        (queue(deltas=100_001), "unfolded", False, "headrace stats --queue mail"),
    ],
)
def test_each_check_finds_what_it_is_for_and_nothing_else(
    figures: Figures, check: str, serious: bool, cure: str
) -> None:
    (found,) = examined(figures)
    assert (found.check, found.serious) == (check, serious)
    assert cure in found.cure


@pytest.mark.parametrize(
    "figures",
    [
        WELL,
        server(version=13),
        server(version=18),
        server(connections=77),
        server(synchronous_commit="remote_apply"),
        table(dead=49_000, options=SLOW),
        table(dead=900_000, live=10_000_000, options=SLOW),  # not yet ten times what it waits for
        table(live=100, size=60 << 20),
        table(live=9_000, analysed=False),
        holder(age=59.0),
        holder(kind="slot", age=900_000.0),
        WELL._replace(skew=-0.9),
        WELL._replace(pooler=True, direct=True),
        stats(enqueued=50, acked=50, expired_leases=49),  # too few to tell
        stats(enqueued=10_000, acked=10_000, expired_leases=90),
        stats(enqueued=1, paused=True, acked=1),
        queue(oldest_dead=6 * 86_400.0, payload_p99=60_000, payload_max=1 << 20, deltas=90_000),
        queue(overdue=59.0, **WAITING),
        queue(overdue=61.0),  # the lease of a job that is done: it goes with the next look
        WELL._replace(queues=[], tables=[], holders=[]),
    ],
)
def test_what_does_no_harm_is_not_mentioned(figures: Figures) -> None:
    assert examined(figures) == []


# On a server


@pytest.fixture(scope="module")
def own_server() -> Any:
    """One whose settings are those that the doctor likes, whatever the machine's are."""
    made = PrivateServer(idle_in_transaction_session_timeout="60s", max_prepared_transactions=5, wal_level="logical")
    made.set(synchronous_commit=None)
    yield made
    made.close()


@pytest.fixture
def place(own_server: PrivateServer) -> Any:
    """A schema in it, of the test's own. That server does not fsync, and no check may mind but one."""
    dsn = own_server.dsn()
    with connected(dsn) as connection:
        connection.execute("DROP SCHEMA IF EXISTS headrace CASCADE")
    headrace.connect(dsn).close()
    return dsn


def found(dsn: str) -> set[str]:
    return set(findings(dsn)) - {"fsync"}


def test_a_server_in_good_order_is_told_so(place: str) -> None:
    with headrace.connect(place) as queue:
        queue.enqueue_many([Job(), Job(delay=60)])
        queue.dequeue(0)
    assert findings(place).keys() == {"fsync"}
    result = cli("doctor", place)
    assert result.exit_code == 1
    assert "serious" in result.stdout
    assert "ALTER SYSTEM SET fsync = on" in result.stdout


def test_settings_are_read_from_the_server(place: str, own_server: PrivateServer) -> None:
    own_server.set(autovacuum="off", synchronous_commit="off", idle_in_transaction_session_timeout="0")
    try:
        assert found(place) == {"autovacuum", "synchronous_commit", "idle_in_transaction"}
    finally:
        own_server.set(autovacuum=None, synchronous_commit=None, idle_in_transaction_session_timeout="60s")
    own_server.read_only()
    try:
        assert found(place) == {"read_only"}
    finally:
        own_server.read_only(False)


def test_options_that_were_lost_are_seen(place: str) -> None:
    with connected(place) as connection:
        connection.execute("ALTER TABLE headrace.jobs RESET (fillfactor)")
        connection.execute("ALTER TABLE headrace.deltas SET (autovacuum_enabled = off)")
    assert found(place) == {"options", "autovacuum"}


def test_an_old_snapshot_a_prepared_transaction_and_a_slot_are_seen(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "HELD", 0.0)
    monkeypatch.setattr(doctor, "SLOT_AGE", -1)
    with connected(place) as other:
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT FROM headrace.jobs")
        seen = findings(place)["horizon"]
        assert seen["cure"] == f"SELECT pg_terminate_backend({other.info.backend_pid})"
        other.execute("ROLLBACK")
    with connected(place) as other:
        other.execute("BEGIN; INSERT INTO headrace.deltas (queue) VALUES (99); PREPARE TRANSACTION 'it''s'")
        assert "it's" in findings(place)["horizon"]["what"]
        other.execute("ROLLBACK PREPARED 'it''s'")
        other.execute("SELECT pg_create_logical_replication_slot('copy', 'pgoutput')")
        assert "slot copy (inactive)" in findings(place)["horizon"]["what"]
        other.execute("SELECT pg_drop_replication_slot('copy')")
    assert found(place) == set()


def test_taken_connections_are_counted(place: str, own_server: PrivateServer) -> None:
    others = [own_server.connect() for _ in range(48)]
    try:
        assert "connections" in found(place)
    finally:
        for other in others:
            other.close()


def test_a_pooler_is_noticed(place: str, bouncer: Callable[..., Bouncer]) -> None:
    between = bouncer(place)
    assert found(between.dsn) == {"pooler"}
    assert found(f"{between.dsn}?direct={place}") == set()


def test_another_clock_is_noticed(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    here = time.time()
    monkeypatch.setattr("headrace.postgres.figures.time.time", lambda: here - 120)
    assert found(place) == {"clocks"}


def test_rows_that_nobody_counted_are_found(place: str) -> None:
    with headrace.connect(place) as queue:
        queue.enqueue_many([Job() for _ in range(3)])
    with connected(place) as connection:
        connection.execute("DELETE FROM headrace.jobs WHERE pk = 1")
        assert found(place) == {"figures"}
        connection.execute("UPDATE headrace.queues SET ready = ready - 1")
    assert found(place) == {"unaccounted"}


def test_figures_of_the_queues_are_read(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "UNFOLDED", 3)
    with headrace.connect(place, queue="mail", max_payload=1 << 20) as queue:
        queue.enqueue_many([Job(id="dead", max_attempts=1), *(Job(payload=b"x" * 100_000) for _ in range(9))])
        dead = queue.dequeue(0)
        assert dead is not None
        queue.nack(dead)
        assert queue.dequeue(0) is not None
        queue.pause()
    with connected(place) as connection:
        week = 8 * 86_400 * 1_000_000
        connection.execute("UPDATE headrace.dead SET died = died - %s", (week,))
        connection.execute("INSERT INTO headrace.leases SELECT 1, 1, '{7}'")
        connection.execute(
            "INSERT INTO headrace.deltas (queue) SELECT queue FROM headrace.queues, generate_series(1, 9)"
        )
        connection.execute("UPDATE headrace.leases SET queue = (SELECT queue FROM headrace.queues WHERE name = 'mail')")
    seen = findings(place)
    assert set(seen) - {"fsync"} == {"dead_letters", "paused", "overdue", "payloads", "unfolded"}
    assert "queue mail: large payloads (99th percentile 98 KiB" in seen["payloads"]["what"]
    assert "the first for 8 days" in seen["dead_letters"]["what"]


def test_who_may_only_read_is_enough_and_is_told_what_he_does_not_see(place: str) -> None:
    with stranger(place) as (url, name):
        with connected(place) as owner:
            owner.execute(f"GRANT USAGE ON SCHEMA headrace TO {name}".encode())
            owner.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA headrace TO {name}".encode())
        seen = findings(url)
        assert set(seen) - {"fsync"} == {"horizon"}
        assert "GRANT pg_read_all_stats" in seen["horizon"]["cure"]


def test_the_doctor_changes_nothing(place: str) -> None:
    clock = VirtualClock()
    with headrace.connect(f"{place}?schema=virtual", clock=clock, lease=10) as queue:
        queue.enqueue_many([Job(id="a"), Job(id="b", delay=5)])
        assert queue.dequeue(0) is not None
    with connected(place) as connection:
        before = _rows(connection)
        cli("doctor", f"{place}?schema=virtual")
        assert _rows(connection) == before
        connection.execute("DROP SCHEMA virtual CASCADE")


def _rows(connection: psycopg.Connection[Any]) -> list[Any]:
    tables = ("jobs", "deltas", "leases", "queues")
    queries = [f"SELECT * FROM virtual.{table} ORDER BY 1, 2" for table in tables]  # noqa: S608  # names of ours
    return [connection.execute(query.encode()).fetchall() for query in queries]


def test_the_exit_code_tells_whether_something_is_serious(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    headrace.connect(dsn).close()
    note, serious = Finding("a", False, "a note", "cure"), Finding("b", True, "b", "cure")
    for given, code in (([], 0), ([note], 0), ([note, serious], 1)):
        monkeypatch.setattr(doctor, "checks", lambda given=given: [lambda figures: iter(given)])
        result = cli("doctor", dsn, "--json")
        assert result.exit_code == code
        report = json.loads(result.stdout)
        assert report["ok"] == (code == 0)
        assert [each["check"] for each in report["findings"]] == sorted((each.check for each in given), reverse=True)
    monkeypatch.setattr(doctor, "checks", list)
    assert "nothing to mend" in cli("doctor", dsn).stdout
