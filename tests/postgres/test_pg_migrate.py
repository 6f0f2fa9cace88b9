"""``headrace migrate``, and the other commands on a postgresql:// URL."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from pg_kit import cli, connected, described, stranger

import headrace
from headrace import ConfigError, Job, sql

SECRET = "S3cr3t/p@ss word"


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
