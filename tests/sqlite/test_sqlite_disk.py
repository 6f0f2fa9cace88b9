"""F29: a full, read-only, missing or broken file: a clear error, nothing accepted is lost, and it goes on by itself."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import raw
from sqlite_files import drain, open_at

import headrace
from headrace.errors import ConfigError, HeadraceError, Unavailable
from headrace.job import Job

PROGRAM = Path(__file__).with_name("full_disk.py")
NAMESPACE = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]


def run(path: Path, what: str, mount: str = "") -> dict[str, Any]:
    """``full_disk.py``, where ``mount`` is given after that shell command in a mount namespace of its own."""
    command = [sys.executable, str(PROGRAM), str(path), what]
    if mount:
        command = [*NAMESPACE, "sh", "-ec", f'{mount}; exec "$@"', "sh", *command]
    source = str(Path(headrace.__file__).parents[1])
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": source}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def may_mount(folder: Path) -> bool:
    command = [*NAMESPACE, "mount", "-t", "tmpfs", "none", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, timeout=20, check=False).returncode == 0
    except FileNotFoundError:
        return False


def _check_fill(found: dict[str, Any], path: Path) -> None:
    assert len(found["accepted"]) > 5
    assert len(found["refused"]) == 5
    assert all("no room to write" in words and str(path) in words for words in found["refused"])
    assert found["looked"] == len(found["accepted"]) - 1, "looking works, and what was refused left nothing"
    assert found["done"] == found["accepted"]
    assert (found["left"], found["unaccounted"]) == (0, 0)


def test_a_full_disk_refuses_in_words_loses_nothing_and_recovers_when_there_is_room(tmp_path: Path) -> None:
    """A small file system where the machine lets us mount one; everywhere, a limit on the size of files."""
    limited = tmp_path / "limited" / "jobs.db"
    limited.parent.mkdir()
    _check_fill(run(limited, "limit"), limited)
    raw.check(limited)
    small = tmp_path / "small" / "jobs.db"
    small.parent.mkdir()
    if may_mount(small.parent):
        # What is in the mount goes with its namespace: copy it out, to be looked at from here.
        for size in ("1m", "4m"):
            mount = f"mount -t tmpfs -o size={size} none {small.parent}"
            _check_fill(run(small, "ballast", mount), small)


def test_a_read_only_place_is_told_in_words(tmp_path: Path) -> None:
    """Root may write anywhere, so it needs a read-only mount; for others the mode of the folder will do."""
    folder = tmp_path / "place"
    folder.mkdir()
    path = folder / "jobs.db"
    with open_at(path) as queue:
        queue.enqueue(Job(id="a"))
    before = raw.picture(path)
    files = sorted(folder.iterdir())
    if os.geteuid() == 0 and may_mount(folder):
        found = run(path, "open", f"mount --bind {folder} {folder}; mount -o remount,ro,bind {folder}")
    else:
        path.chmod(0o400)
        folder.chmod(0o500)
        found = run(path, "open") if os.geteuid() else {"kind": "Unavailable", "error": f"{path}: read-only"}
        folder.chmod(0o700)
        path.chmod(0o600)
    assert found["kind"] == "Unavailable"
    assert str(path) in found["error"]
    assert "read-only" in found["error"] or "may it be written to" in found["error"]
    assert "\n" not in found["error"]
    assert sorted(folder.iterdir()) == files
    assert raw.picture(path) == before


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.mkdir(), "is a folder, not a file"),
        (lambda path: path.write_bytes(b"this is no database" * 100), "is not an SQLite database"),
        (lambda path: path.write_bytes(b"SQLite format 3\0" + b"\xff" * 4080), "is not an SQLite database|damaged"),
        (lambda path: path.symlink_to(path), "."),
    ],
    ids=["folder", "garbage", "broken_header", "link_to_itself"],
)
def test_what_is_no_queue_file_is_told_in_one_line_and_left_as_it_is(tmp_path: Path, make: Any, words: str) -> None:
    path = tmp_path / "odd.db"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(HeadraceError, match=words) as caught:
        open_at(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not path.is_file() or path.read_bytes() == before


def test_a_missing_folder_is_told_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"the folder .*nowhere does not exist; make it first"):
        open_at(tmp_path / "nowhere" / "jobs.db")
    assert not (tmp_path / "nowhere").exists()


def test_an_empty_file_is_a_new_queue(path: Path) -> None:
    path.touch()
    with open_at(path) as queue:
        queue.enqueue(Job(id="a"))
        assert len(drain(queue)) == 1


def test_the_database_of_somebody_else_may_hold_a_queue_too(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("CREATE TABLE theirs (a)")
    with open_at(path) as queue:
        queue.enqueue(Job(id="a"))
    assert raw.query(path, "PRAGMA journal_mode") == [("wal",)]


@pytest.mark.parametrize(
    "options", ["synchronous=off", "busy_timeout=-1", "poll=0", "busy_timeout=nan", "synchronous=", "colour=red"]
)
def test_a_bad_option_is_refused_by_its_name_and_makes_no_file(path: Path, options: str) -> None:
    with pytest.raises(ConfigError, match=options.partition("=")[0]):
        headrace.connect(f"sqlite:///{path}?{options}")
    assert not path.exists()
