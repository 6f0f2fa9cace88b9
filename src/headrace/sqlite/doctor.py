"""What will hurt a queue in a file. ``look`` reads; the checks are pure."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..sql.finding import Finding
from .database import Database

WAL_RESET_DEFECT = ((3, 7, 0), (3, 51, 2))
"""SQLite versions, both included, in which two connections that write and checkpoint in the same moment may
damage a file in WAL mode; rare, and mended in 3.51.3."""
MIB = 1 << 20
LARGE_LOG = 64 * MIB
LITTLE = 100 * MIB


class Figures(NamedTuple):
    path: str
    version: tuple[int, int, int]
    synchronous: str
    journal: str
    size: int
    log: int
    """Bytes that are in the write-ahead log."""
    free: int
    """Bytes left on its disk."""
    damage: str
    """What SQLite's own check says; "ok" is none."""


def look(path: str, synchronous: str) -> Figures:
    database = Database(path, synchronous, 5.0, read_only=True)

    def work(connection: sqlite3.Connection) -> tuple[str, str]:
        (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
        (damage,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        return journal, damage

    try:
        journal, damage = database.read(work)
    finally:
        database.close()
    log = os.path.getsize(f"{path}-wal") if os.path.exists(f"{path}-wal") else 0
    free = shutil.disk_usage(os.path.dirname(os.path.abspath(path))).free
    version = sqlite3.sqlite_version_info
    return Figures(path, version, synchronous, journal, os.path.getsize(path), log, free, damage)


def checks() -> list[Callable[[Figures], Iterator[Finding]]]:
    return [defect, damaged, journal, log, room, durability]


def has_defect(version: tuple[int, ...]) -> bool:
    return WAL_RESET_DEFECT[0] <= version <= WAL_RESET_DEFECT[1]


def defect(f: Figures) -> Iterator[Finding]:
    if has_defect(f.version):
        yield Finding(
            "version", False,
            f"SQLite {'.'.join(map(str, f.version))} has the WAL-reset defect of 3.7.0 to 3.51.2: a rare race of two "
            "processes may damage the file",
            "SQLite 3.51.3 or later, which comes with a newer operating system or build of Python; keep backups",
        )  # fmt: skip


def damaged(f: Figures) -> Iterator[Finding]:
    if f.damage != "ok":
        yield Finding("damage", True, f"{f.path} is damaged: {f.damage}", "stop the workers and put a backup back")


def journal(f: Figures) -> Iterator[Finding]:
    if f.journal != "wal":
        yield Finding(
            "journal", False, f"journal_mode is {f.journal}, so readers and writers wait for each other",
            "let no other program change it; a file system that cannot share memory (a network's) is no place for it",
        )  # fmt: skip


def log(f: Figures) -> Iterator[Finding]:
    if f.log > LARGE_LOG:
        yield Finding(
            "log", False,
            f"the write-ahead log has {f.log / MIB:,.0f} MiB: somebody reads in a transaction that does not end, so it "
            "cannot be taken over into the file",
            f"end that reader (fuser {f.path}), then: sqlite3 {f.path} 'PRAGMA wal_checkpoint(TRUNCATE)'",
        )  # fmt: skip


def room(f: Figures) -> Iterator[Finding]:
    if f.free < LITTLE:
        yield Finding(
            "room", True, f"{f.free / MIB:,.0f} MiB are left on the disk of {f.path}", "make room"
        )  # fmt: skip


def durability(f: Figures) -> Iterator[Finding]:
    if f.synchronous == "normal":
        yield Finding(
            "synchronous", False,
            "synchronous=normal: a power cut loses what was accepted in the last moments, a killed process nothing",
            "synchronous=full, where that matters",
        )  # fmt: skip
