"""Making and upgrading the tables: numbered scripts, each applied once, under the write lock."""

from __future__ import annotations

import sqlite3

from .. import sql
from ..errors import ConfigError

_LEDGER = """
CREATE TABLE IF NOT EXISTS headrace_migrations (
    number INTEGER PRIMARY KEY,
    name   TEXT NOT NULL,
    at     TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
) STRICT
"""


def current(connection: sqlite3.Connection) -> int:
    """The number of the last migration applied; 0 for a file without our tables."""
    known = "SELECT count(*) FROM sqlite_schema WHERE name = 'headrace_migrations'"
    if connection.execute(known).fetchone()[0] == 0:
        return 0
    latest: int | None = connection.execute("SELECT max(number) FROM headrace_migrations").fetchone()[0]
    return latest or 0


def migrate(connection: sqlite3.Connection) -> None:
    """Apply what is missing. Within a write transaction: a crash half-way leaves the file as it was."""
    steps = sql.migrations("sqlite")
    have, want = current(connection), steps[-1][0]
    if have > want:
        raise ConfigError(
            f"the file was written by a newer Headrace (schema {have}, this one knows {want}): upgrade this program"
        )
    if have == want:
        return
    connection.execute(_LEDGER)
    for number, name, script in steps:
        if number > have:
            for statement in split(script):
                connection.execute(statement)
            connection.execute("INSERT INTO headrace_migrations (number, name) VALUES (?, ?)", (number, name))


def split(script: str) -> list[str]:
    """The statements of a script; ``executescript`` would commit the transaction under us."""
    statements, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending.strip())
            pending = ""
    return statements
