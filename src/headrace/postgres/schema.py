"""Making and upgrading the tables: numbered scripts, each applied once, under a lock.

A program may meet tables that are newer than itself, for releases run side by side while one is rolled out. What a
migration adds does it no harm. One after which older programs would do harm says so in its first line, ``-- breaking``;
the ledger keeps that, and the older ones refuse.
"""

from __future__ import annotations

from typing import NamedTuple

import psycopg

from .. import sql
from ..errors import ConfigError
from .connections import Connection

_LOCK = 0x68656164
_LOCK_TIMEOUT = "2s"
"""Who waits for a table, as while a backup reads it, lets nobody else have it. So a migration gives up early, and is
tried again from its beginning; those who work get on in between."""
_BREAKING = "-- breaking"


class Migration(NamedTuple):
    number: int
    name: str
    statements: list[str]
    """All that applying it takes, its line in the ledger first: a second one to apply it fails there."""

    def __str__(self) -> str:
        return f"{self.number:04} {self.name}"


def pending(connection: Connection, schema: str) -> list[Migration]:
    """Those that have not been applied. Changes nothing."""
    steps = sql.migrations("postgres")
    latest = steps[-1][0]
    have, broken = _ledger(connection, schema)
    if broken > latest:
        raise ConfigError(
            f"schema {schema}: was changed by a newer Headrace (migration {broken}, this one knows {latest}) in a way "
            "that older ones cannot work with: upgrade this program"
        )
    made = have > 0 or _schema_is_there(connection, schema)
    return [_migration(*step, schema, made) for step in steps if step[0] > have]


def migrate(connection: Connection, schema: str) -> list[str]:
    """Apply what is missing, all of it or nothing; the names of what was applied."""
    if not pending(connection, schema):
        return []
    try:
        with connection.transaction():
            for statement in _first(schema):
                connection.execute(statement.encode())
            todo = pending(connection, schema)
            for statement in [statement for step in todo for statement in step.statements]:
                connection.execute(statement.encode())
    except psycopg.errors.ReservedName as error:
        raise ConfigError(
            f"schema {schema}: names that begin with pg_ are the server's own ({error.diag.message_primary}); choose "
            "another"
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigError(
            f"schema {schema}: the tables cannot be made or changed by this user ({error.diag.message_primary}); run "
            "'headrace migrate' as one who may, or hand 'headrace migrate --show' to one"
        ) from error
    return [str(step) for step in todo]


def script(todo: list[Migration], schema: str) -> str:
    """The same as SQL, for psql; empty where nothing is missing."""
    if not todo:
        return ""
    parts = ["BEGIN;", *(f"{statement};" for statement in _first(schema))]
    for step in todo:
        parts += [f"-- {step}", *(f"{statement.strip().rstrip(';')};" for statement in step.statements)]
    return "\n\n".join([*parts, "COMMIT;"])


def quoted(text: str, schema: str) -> str:
    """A text of SQL for that schema, an identifier in lower case; it may be a word of SQL, such as "order"."""
    return text.replace("{schema}", f'"{schema}"')


_LEDGER = """
CREATE TABLE IF NOT EXISTS {schema}.migrations (
    number   integer PRIMARY KEY,
    name     text NOT NULL,
    breaking boolean NOT NULL DEFAULT false,  -- programs that do not know it may not use the tables
    at       timestamptz NOT NULL DEFAULT now()
)
"""


def _migration(number: int, name: str, script: str, schema: str, made: bool) -> Migration:
    # Who may make tables in a schema need not be allowed to make schemas, not even one that is there.
    first = [*([] if made else ["CREATE SCHEMA {schema}"]), _LEDGER] if number == 1 else []
    breaking = str(script.startswith(_BREAKING)).lower()
    ledger = f"INSERT INTO {{schema}}.migrations (number, name, breaking) VALUES ({number}, '{name}', {breaking})"  # noqa: S608
    return Migration(number, name, [quoted(text, schema) for text in (*first, ledger, script)])


def _first(schema: str) -> list[str]:
    """One migrates at a time. For that lock one may wait."""
    return [
        f"SELECT pg_advisory_xact_lock({_LOCK}, hashtext('{schema}'))",  # an identifier
        f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'",
    ]


def _schema_is_there(connection: Connection, schema: str) -> bool:
    found = connection.execute("SELECT FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone()
    return found is not None


def _ledger(connection: Connection, schema: str) -> tuple[int, int]:
    """The latest migration that was applied, and the latest breaking one; 0: none."""
    there = "SELECT FROM pg_tables WHERE schemaname = %s AND tablename = 'migrations'"
    if connection.execute(there, (schema,)).fetchone() is None:
        return 0, 0
    latest = (
        "SELECT coalesce(max(number), 0), coalesce(max(number) FILTER (WHERE breaking), 0) FROM {schema}.migrations"
    )
    try:
        row = connection.execute(quoted(latest, schema).encode()).fetchone()
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigError(
            f"schema {schema}: this user may not read the tables ({error.diag.message_primary}): "
            f"GRANT USAGE ON SCHEMA {schema}, and rights on its tables and sequences"
        ) from error
    assert row is not None
    return row[0], row[1]
