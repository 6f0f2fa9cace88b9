"""The index: a table of its own, in which a repeat changes nothing and a late writer changes nothing either."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

from .count import COUNTED

_TABLE = """
CREATE TABLE IF NOT EXISTS files (
    path  TEXT PRIMARY KEY,
    fence INTEGER NOT NULL,
    bytes INTEGER, lines INTEGER, functions INTEGER, classes INTEGER, imports INTEGER, calls INTEGER
)
"""
# At least once means that a job may be done twice, even at the same time. The fence rises with every lease:
# whoever comes with an older one than what is written comes too late.
_WRITE = """
INSERT INTO files (path, fence, bytes, lines, functions, classes, imports, calls)
VALUES (:path, :fence, :bytes, :lines, :functions, :classes, :imports, :calls)
ON CONFLICT (path) DO UPDATE SET
    fence = excluded.fence, bytes = excluded.bytes, lines = excluded.lines, functions = excluded.functions,
    classes = excluded.classes, imports = excluded.imports, calls = excluded.calls
WHERE files.fence < excluded.fence
"""
_TOTALS = "SELECT count(*), sum(bytes), sum(lines), sum(functions), sum(classes), sum(imports), sum(calls) FROM files"


def connect(database: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(database, timeout=30.0)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    with connection:
        connection.execute(_TABLE)
    return connection


def write(connection: sqlite3.Connection, path: str, fence: int, figures: Mapping[str, int]) -> None:
    with connection:
        connection.execute(_WRITE, {"path": path, "fence": fence, **figures})


def totals(connection: sqlite3.Connection) -> dict[str, int]:
    row = connection.execute(_TOTALS).fetchone()
    return {name: figure or 0 for name, figure in zip(("files", *COUNTED), row, strict=True)}
