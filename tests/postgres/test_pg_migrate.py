"""``headrace migrate``, and the other commands on a postgresql:// URL."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

import psycopg
import pytest
from pg_kit import cli, connected, described, stranger
from pg_proxy import Proxy
from pg_server import PrivateServer
from pg_url import url_of

import headrace
from headrace import ConfigError, Job, sql
from headrace.postgres import admin
from headrace.testing.clock import wait_until

SECRET = "S3cr3t/p@ss word"
LIMIT = 30.0
MORE = [
    "ALTER TABLE {schema}.jobs ADD COLUMN note text; UPDATE {schema}.jobs SET note = 'seen';",
    "ALTER TABLE {schema}.archive ADD COLUMN note text; CREATE TABLE {schema}.notes (a int);",
]
LATER = """
import json, sys
from headrace import sql
from headrace.cli import root

steps = sql.migrations("postgres")
steps += [(len(steps) + number, "more", script) for number, script in enumerate(json.loads(sys.argv.pop(1)), 1)]
sql.migrations = lambda dialect: steps
root()
"""
"""The program ``headrace`` of a later release."""
Start = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def later() -> Iterator[Start]:
    """Starts ``headrace migrate`` of a release that has ``MORE``."""
    with ExitStack() as stack:

        def start(dsn: str) -> subprocess.Popen[str]:
            command = [sys.executable, "-c", LATER, json.dumps(MORE), "migrate", dsn, "--json"]
            process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            stack.callback(process.kill)
            return process

        yield start


def applied(process: subprocess.Popen[str]) -> list[str]:
    output, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0
    names: list[str] = json.loads(output)["applied"]
    return names


@contextmanager
def half_way(dsn: str) -> Iterator[Callable[[], None]]:
    """While somebody reads the archive, ``MORE`` stops in its second half; ``reached`` waits until it has."""
    waits = "SELECT FROM pg_locks WHERE relation = 'headrace.archive'::regclass AND NOT granted"
    with (
        closing(psycopg.connect(dsn, autocommit=True)) as reader,
        closing(psycopg.connect(dsn, autocommit=True)) as watch,
    ):
        reader.execute("BEGIN; SELECT FROM headrace.archive")

        def reached() -> None:
            wait_until(lambda: watch.execute(waits).fetchone() is not None, LIMIT)

        yield reached


def with_a_job(dsn: str) -> dict[str, list[str]]:
    """Tables of today with a job in them; what the catalogue knows of them."""
    with headrace.connect(dsn) as queue:
        queue.enqueue(Job(id="kept", payload=b"hello"))
    return described(dsn, "headrace")


def the_job_is_there(dsn: str) -> None:
    with headrace.connect(dsn) as queue:
        job = queue.dequeue(0)
        assert job is not None
        assert (job.id, job.payload, job.attempt) == ("kept", b"hello", 1)
        queue.ack(job)
        assert queue.stats().unaccounted == 0


def advisory_locks(dsn: str) -> int:
    with connected(dsn) as watch:
        row = watch.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_database ON database = pg_database.oid"
            " WHERE locktype = 'advisory' AND datname = current_database()"
        ).fetchone()
    assert row is not None
    return int(row[0])


NAMES = [f"{len(sql.migrations('postgres')) + number:04} more" for number in (1, 2)]


def test_migrate_makes_the_tables_and_says_so_once(dsn: str) -> None:
    first, second = cli("migrate", dsn), cli("migrate", dsn)
    assert first.exit_code == second.exit_code == 0
    for number, name, _ in sql.migrations("postgres"):
        assert f"applied {number:04} {name}" in first.stdout
        assert f"{number:04} {name}" not in second.stdout
    assert "schema headrace of postgresql://" in second.stdout
    assert json.loads(cli("migrate", dsn, "--json").stdout) == {"schema": "headrace", "applied": []}
    headrace.connect(dsn, migrate=False).close()


def test_the_schema_may_be_named_by_an_option_or_in_the_url(dsn: str) -> None:
    assert cli("migrate", "--schema", "jobs", "--url", f"{dsn}?schema=other&connect_timeout=9").exit_code == 0
    assert cli("migrate", f"{dsn}?schema=mail").exit_code == 0
    with connected(dsn) as connection:
        rows = connection.execute("SELECT schemaname FROM pg_tables WHERE tablename = 'jobs' ORDER BY 1").fetchall()
    assert rows == [("jobs",), ("mail",)]
    assert cli("migrate", dsn, "--schema", 'x"; drop').exit_code == 3


def test_show_prints_sql_that_psql_takes_and_changes_nothing(dsn: str) -> None:
    shown = cli("migrate", dsn, "--show").stdout
    with connected(dsn) as connection:
        assert connection.execute("SELECT FROM pg_namespace WHERE nspname = 'headrace'").fetchone() is None
    psql = shutil.which("psql")
    if psql is None:  # what psql would do with it
        with connected(dsn) as connection:
            connection.execute(shown.encode())
    else:
        command = [psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", dsn]
        subprocess.run(command, input=shown, text=True, check=True, capture_output=True, timeout=60)
    assert cli("migrate", dsn, "--schema", "other").exit_code == 0
    assert described(dsn, "headrace") == described(dsn, "other")
    assert "nothing is missing" in cli("migrate", dsn, "--show").stdout
    assert "applied" not in cli("migrate", dsn).stdout


@pytest.mark.parametrize(("url", "why"), [("memory://", "has no tables"), ("sqlite:///x.db", "by itself")])
def test_migrate_is_for_postgresql(url: str, why: str) -> None:
    result = cli("migrate", url)
    assert result.exit_code == 3
    assert why in result.stderr


def test_looking_makes_nothing(dsn: str) -> None:
    for command in (["stats"], ["check"], ["dead", "list"], ["doctor"], ["archive"]):
        result = cli(*command, "--url", dsn)
        assert result.exit_code in (1, 3), command
        assert "holds no queues" in result.stderr or "headrace migrate" in result.stderr
    with connected(dsn) as connection:
        assert connection.execute("SELECT FROM pg_namespace WHERE nspname = 'headrace'").fetchone() is None


def test_looking_upgrades_nothing(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    headrace.connect(dsn).close()
    steps = sql.migrations("postgres")
    monkeypatch.setattr(sql, "migrations", lambda dialect: [*steps, (len(steps) + 1, "more", "SELECT 1")])
    for command in ("stats", "check", "pause"):
        assert "headrace migrate" in cli(command, "--url", dsn).stderr
    assert "more" in cli("migrate", dsn).stdout
    assert cli("check", "--url", dsn).exit_code == 0


def test_commands_find_the_queues_of_a_schema(dsn: str) -> None:
    with headrace.connect(dsn, queue="mail", max_attempts=1) as mail, headrace.connect(dsn, queue="reports"):
        mail.enqueue_many([Job(id="a"), Job(id="b")])
        job = mail.dequeue(0)
        assert job is not None
        mail.nack(job, error="no such host")
    shown = json.loads(cli("stats", "--json", "--url", dsn).stdout)
    assert [(each["queue"], each["ready"], each["dead"]) for each in shown] == [("mail", 1, 1), ("reports", 0, 0)]
    assert json.loads(cli("pause", "--queue", "mail", "--json", "--url", dsn).stdout)["paused"]
    assert json.loads(cli("cancel", "b", "--queue", "mail", "--json", "--url", dsn).stdout)["cancelled"]
    assert "no such host" in cli("dead", "list", "--queue", "mail", "--url", dsn).stdout
    assert "there is mail, reports" in cli("stats", "--queue", "mial", "--url", dsn).stderr
    assert [each["queue"] for each in json.loads(cli("stats", "--json", "--url", dsn).stdout)] == ["mail", "reports"]


def test_check_says_which_server_it_is(dsn: str) -> None:
    assert cli("check", "--url", dsn, "--create").exit_code == 0
    report = json.loads(cli("check", "--json", "--url", dsn).stdout)
    with connected(dsn) as connection:
        version = connection.info.server_version
    assert report["postgresql"].startswith(str(version // 10_000))
    assert (report["schema"], report["usable"], report["size"]) == ("headrace", True, 0)


@pytest.mark.parametrize("command", ["stats", "check", "migrate", "doctor", "archive"])
def test_no_command_shows_a_password(dsn: str, command: str) -> None:
    """Nobody listens on port 1."""
    secret = "S3cr3t%2Fp%40ss%20word"
    where = f"ann:{secret}@127.0.0.1:1/shop?patience=0.01"
    for url in (
        f"postgresql://{where}",
        f"postgres://{where}",
        f"postgresql://127.0.0.1:1/shop?patience=0&password={secret}",
    ):
        result = cli(command, "--debug", "--url", url)
        assert result.exit_code == 4
        assert "127.0.0.1" in result.output
        for part in ("S3cr3t", "p@ss", "p%40ss"):
            assert part not in result.output
    wrong = cli(command, "--url", f"postgresql://ann:{SECRET}@127.0.0.1:1/shop")
    assert wrong.exit_code in (3, 4)
    assert "S3cr3t" not in wrong.output


def test_a_user_who_may_not_read_the_tables_is_told(dsn: str) -> None:
    headrace.connect(dsn).close()
    with stranger(dsn) as (url, _):
        result = cli("migrate", url)
    assert result.exit_code == 3
    assert "may not read the tables" in result.stderr


@pytest.mark.parametrize("direct", [f"postgresql://ann:{SECRET}@db/shop", "no address", "", 7])
def test_a_direct_address_that_cannot_be_read_is_refused_without_showing_it(dsn: str, direct: object) -> None:
    with pytest.raises(ConfigError, match="direct: not an address") as refused:
        headrace.connect(dsn, direct=direct)
    assert "S3cr3t" not in repr(refused.value)


def test_a_migration_that_is_killed_half_way_leaves_nothing_and_is_done_by_the_next(dsn: str, later: Start) -> None:
    before = with_a_job(dsn)
    with half_way(dsn) as reached:
        killed = later(dsn)
        reached()
        killed.kill()
        killed.wait(LIMIT)
    wait_until(lambda: advisory_locks(dsn) == 0, LIMIT)
    assert described(dsn, "headrace") == before
    assert applied(later(dsn)) == NAMES
    the_job_is_there(dsn)


@pytest.mark.parametrize("end", ["done", "killed"])
def test_of_two_at_once_the_second_waits_and_does_what_the_first_has_not_done(dsn: str, later: Start, end: str) -> None:
    with_a_job(dsn)
    with half_way(dsn) as reached:
        first = later(dsn)
        reached()
        second = later(dsn)
        wait_until(lambda: advisory_locks(dsn) == 2, LIMIT)
        if end == "killed":
            first.kill()
    if end == "done":
        assert sorted([applied(first), applied(second)]) == [[], NAMES]
    else:
        assert applied(second) == NAMES
    the_job_is_there(dsn)


def test_a_migration_whose_network_breaks_half_way_is_done_when_it_is_back(
    dsn: str, later: Start, proxy: Callable[[str], Proxy]
) -> None:
    with_a_job(dsn)
    between = proxy(dsn)
    with half_way(dsn) as reached:
        process = later(between.dsn)
        reached()
        between.refuse()
    between.resume()
    assert applied(process) == NAMES
    the_job_is_there(dsn)


@pytest.mark.parametrize("arrives", [False, True], ids=["before", "after"])
def test_a_migration_whose_connection_breaks_at_any_step_is_done_once(
    dsn: str, proxy: Callable[[str], Proxy], arrives: bool
) -> None:
    assert cli("migrate", dsn).exit_code == 0
    unharmed = described(dsn, "headrace")
    between = proxy(dsn)
    url = url_of(between.dsn, sslmode="disable")  # else it begins with a question that ends otherwise
    for step in range(1, 50):
        before = between.requests
        between.break_at(step, arrives)
        result = cli("migrate", url, "--schema", f"s{step}")
        between.resume()
        assert result.exit_code == 0, result.output
        assert described(dsn, f"s{step}") == unharmed
        assert advisory_locks(dsn) == 0
        if between.requests - before < step:
            assert step > 8
            return
    raise AssertionError("it never came through unharmed")


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_a_migration_whose_server_is_restarted_half_way_is_done_when_it_is_back(
    private_server: Callable[..., PrivateServer], later: Start, how: str
) -> None:
    server = private_server()
    with_a_job(server.dsn())
    with half_way(server.dsn()) as reached:
        process = later(server.dsn())
        reached()
        server.restart(how)
    assert applied(process) == NAMES
    the_job_is_there(server.dsn())


def test_a_migration_may_take_longer_than_a_person_waits_for_a_server(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "LONG", 5.0)
    steps = [*sql.migrations("postgres"), (99, "slow", "SELECT pg_sleep(1.2)")]
    monkeypatch.setattr(sql, "migrations", lambda dialect: steps)
    result = cli("migrate", f"{dsn}?patience=0")
    assert "applied 0099 slow" in result.stdout, result.output


def test_a_migration_that_waits_for_a_table_lets_others_work_meanwhile(
    dsn: str, later: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind it, for a table is locked in the order of asking; while whoever reads it takes long, as a backup does."""
    with headrace.connect(f"{dsn}?patience=5") as queue:
        with half_way(dsn) as reached:
            process = later(dsn)
            reached()
            queue.enqueue(Job(id="kept", payload=b"hello"))
            assert process.poll() is None
        assert applied(process) == NAMES
    the_job_is_there(dsn)
