"""``headrace doctor`` on a file and in memory; on a server see tests/postgres."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from headrace import Job
from headrace.queue import Queue
from headrace.sql.finding import Finding
from headrace.sqlite import doctor
from headrace.sqlite.doctor import Figures

Cli = Callable[..., Result]
MIB = 1 << 20
WELL = Figures(
    path="/srv/jobs.db", version=(3, 51, 3), synchronous="full", journal="wal", size=MIB, log=4 * MIB, free=500 * MIB,
    damage="ok",
)  # fmt: skip


def examined(figures: Figures) -> list[Finding]:
    return [found for check in doctor.checks() for found in check(figures)]


@pytest.mark.parametrize(
    ("change", "check", "serious"),
    [
        ({"version": (3, 7, 0)}, "version", False),
        ({"version": (3, 40, 1)}, "version", False),
        ({"version": (3, 51, 2)}, "version", False),
        ({"damage": "row 7 missing from index"}, "damage", True),
        ({"journal": "delete"}, "journal", False),
        ({"log": 65 * MIB}, "log", False),
        ({"free": 99 * MIB}, "room", True),
        ({"synchronous": "normal"}, "synchronous", False),
    ],
)
def test_each_check_of_a_file_finds_what_it_is_for(change: dict[str, Any], check: str, serious: bool) -> None:
    (found,) = examined(WELL._replace(**change))
    assert (found.check, found.serious) == (check, serious)


@pytest.mark.parametrize("change", [{}, {"version": (3, 6, 23)}, {"log": 64 * MIB}, {"free": 100 * MIB}])
def test_a_file_in_good_order_has_no_findings(change: dict[str, Any]) -> None:
    assert examined(WELL._replace(**change)) == []


def checked(result: Result) -> dict[str, Any]:
    return {each["check"]: each for each in json.loads(result.stdout)["findings"]}


def test_a_queue_in_good_order_is_told_so(cli: Cli, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 3))
    queue.enqueue(Job())
    result = cli("doctor")
    assert (result.exit_code, result.stdout.endswith("nothing to mend\n")) == (0, True)
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 40, 1))
    assert checked(cli("doctor", "--json")).keys() == {"version"}


def test_the_url_may_be_given_and_its_settings_count(cli: Cli, queue: Queue, url: str) -> None:
    queue.stats()
    assert "synchronous" in checked(cli("doctor", f"{url}?synchronous=normal", "--json"))
    result = cli("doctor", f"{url}?synchronous=normal")
    assert result.exit_code == 0
    assert "→ synchronous=full" in result.stdout


def test_jobs_that_vanished_are_serious(cli: Cli, queue: Queue, tmp_path: Path) -> None:
    queue.enqueue(Job())
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection, connection:
        connection.execute("UPDATE headrace_queues SET enqueued = enqueued + 1")
    result = cli("doctor", "--json")
    assert result.exit_code == 1
    assert not json.loads(result.stdout)["ok"]
    assert "queue default: +1 jobs unaccounted for" in checked(result)["unaccounted"]["what"]


def test_a_damaged_file_is_serious(cli: Cli, queue: Queue, tmp_path: Path) -> None:
    queue.enqueue_many([Job() for _ in range(100)])
    path = tmp_path / "jobs.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET rootpage = 2 WHERE name = 'headrace_jobs_ready'")
    result = cli("doctor", "--json")
    assert result.exit_code == 1
    assert checked(result)["damage"]["serious"]


def test_nothing_is_looked_for_in_memory(cli: Cli) -> None:
    result = cli("doctor", "memory://")
    assert (result.exit_code, result.stdout) == (0, "memory://: nothing to mend\n")


def test_a_missing_file_is_not_made(cli: Cli, tmp_path: Path) -> None:
    result = cli("doctor", f"sqlite:///{tmp_path / 'missing.db'}")
    assert result.exit_code == 4
    assert "no such file" in result.stderr
    assert not (tmp_path / "missing.db").exists()
