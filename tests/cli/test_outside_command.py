"""Arguments kept outside, from the command line: enqueued, and pruned by age."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import time

import pytest
from cli_program import Program
from click.testing import Result

from headrace.queue import Queue

Cli = Callable[..., Result]
Start = Callable[..., Program]
DAY = 86_400


@pytest.fixture
def folder(tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "outside"
    made.mkdir()
    monkeypatch.setenv("OUTSIDE", str(made))
    monkeypatch.delitem(sys.modules, "cli_barn", raising=False)
    env["OUTSIDE"] = str(made)
    return made


def enqueued(cli: Cli, folder: Path, days: float) -> Path:
    """What a job enqueued so long ago has left."""
    before = set(folder.rglob("*-*"))
    result = cli("enqueue", "cli_barn:app", "grind", "--arg", f"grain={'x' * 1_000}")
    assert result.exit_code == 0, result.output
    (path,) = set(folder.rglob("*-*")) - before
    os.utime(path, (time() - days * DAY,) * 2)
    return path


def test_enqueue_keeps_large_arguments_outside_under_the_queue_they_go_to(cli: Cli, queue: Queue, folder: Path) -> None:
    path = enqueued(cli, folder, 0)
    assert path.parent == folder / "default"
    job = queue.dequeue(0)
    assert job is not None
    assert json.loads(job.payload)["outside"]["name"] == f"default/{path.name}"
    other = cli("enqueue", "cli_barn:app", "grind", "--arg", f"grain={'x' * 1_000}", "--queue", "mill")
    assert other.exit_code == 0, other.output
    assert len(list((folder / "mill").iterdir())) == 1


def test_prune_removes_what_is_older_and_nothing_else(cli: Cli, queue: Queue, folder: Path) -> None:
    old, young = enqueued(cli, folder, 30.1), enqueued(cli, folder, 29.9)
    foreign = [folder / "notes.txt", folder / "default" / "notes.txt", old.with_name(f"{old.name}.bak")]
    for path in foreign:
        path.write_text("somebody else's")
        os.utime(path, (0, 0))
    result = cli("outside", "prune", "cli_barn:app", "--older", "30")
    assert (result.exit_code, result.stdout) == (0, "1 older than 30 days, 0.0 MB; 1 removed\n")
    assert not old.exists()
    assert all(path.exists() for path in (young, *foreign))
    assert queue.stats().ready == 2


def test_a_dry_run_counts_and_removes_nothing(cli: Cli, queue: Queue, folder: Path) -> None:
    old = enqueued(cli, folder, 31)
    shown = cli("outside", "prune", "cli_barn:app", "--older", "30", "--dry-run")
    assert (shown.exit_code, shown.stdout) == (0, "1 older than 30 days, 0.0 MB; nothing is removed\n")
    counted = cli("outside", "prune", "cli_barn:app", "--older", "30", "--dry-run", "--json")
    assert json.loads(counted.stdout) == {"found": 1, "bytes": 1_012, "removed": 0}
    assert old.exists()
    done = cli("outside", "prune", "cli_barn:app", "--older", "30", "--json")
    assert json.loads(done.stdout) == {"found": 1, "bytes": 1_012, "removed": 1}


def test_at_a_terminal_prune_shows_how_far_it_is(cli: Cli, queue: Queue, folder: Path, start: Start) -> None:
    for _ in range(3):
        enqueued(cli, folder, 31)
    program = start("outside", "prune", "cli_barn:app", "--older", "30", terminal=True)
    assert program.ends() == 0
    assert "pruning" in program.output
    assert "3 removed" in program.output


def test_what_cannot_be_removed_stays_and_is_counted(
    cli: Cli, queue: Queue, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = enqueued(cli, folder, 31)
    result = cli("outside", "prune", "cli_barn:stubborn", "--older", "30")
    assert (result.exit_code, result.stdout) == (1, "1 older than 30 days, 0.0 MB; 0 removed\n")
    assert f"default/{old.name} could not be removed: PermissionError: it is bolted down" in caplog.text
    assert "headrace: 1 could not be removed; the log says why\n" in result.stderr
    assert old.exists()


def test_a_file_system_that_knows_no_ages_is_told(cli: Cli, queue: Queue, folder: Path) -> None:
    old = enqueued(cli, folder, 31)
    result = cli("outside", "prune", "cli_barn:ageless", "--older", "30")
    assert result.exit_code == 3
    assert "outside: this file system does not tell when something was written" in result.stderr
    assert old.exists()


@pytest.mark.parametrize("older", [(), ("--older", "0"), ("--older", "-1"), ("--older", "30d")])
def test_an_age_is_a_whole_number_of_days_and_has_to_be_given(
    cli: Cli, queue: Queue, folder: Path, older: tuple[str, ...]
) -> None:
    path = enqueued(cli, folder, 31)
    result = cli("outside", "prune", "cli_barn:app", *older)
    assert (result.exit_code, "--older" in result.stderr) == (2, True)
    assert path.exists()


def test_an_app_that_keeps_nothing_outside_is_told(cli: Cli, queue: Queue) -> None:
    result = cli("outside", "prune", "cli_shop:app", "--older", "30")
    assert result.exit_code == 3
    assert "cli_shop:app keeps nothing outside" in result.stderr
