"""Small things that several tests on PostgreSQL need."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from click.testing import CliRunner, Result
from pg_url import url_of

from headrace.cli import root

DESCRIPTIONS = {
    "columns": """
        SELECT c.relname, c.relkind::text, c.reloptions, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
            a.attidentity::text, pg_get_expr(d.adbin, d.adrelid)
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE c.relnamespace = %(schema)s::regnamespace ORDER BY c.relname, a.attnum
    """,
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = %(schema)s::regnamespace ORDER BY 1, 2
    """,
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = %(schema)s ORDER BY 1, 2",
    "sequences": """
        SELECT sequencename, data_type::text, increment_by, cycle FROM pg_sequences WHERE schemaname = %(schema)s
    """,
    "toast": """
        SELECT c.relname, t.reloptions FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid
        WHERE c.relnamespace = %(schema)s::regnamespace ORDER BY 1
    """,
}


@contextmanager
def connected(dsn: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@contextmanager
def stranger(dsn: str) -> Iterator[tuple[str, str]]:
    """The URL of a user who may log in and nothing else, and the user's name; gone in the end."""
    name = f"headrace_{secrets.token_hex(4)}"
    with connected(dsn) as owner:
        owner.execute(f"CREATE ROLE {name} LOGIN".encode())
        try:
            yield url_of(dsn, user=name), name
        finally:
            owner.execute(f"DROP OWNED BY {name} CASCADE; DROP ROLE {name}".encode())


def described(dsn: str, schema: str) -> dict[str, list[str]]:
    """All that the catalogue knows of a schema, without its name."""
    with connected(dsn) as connection:
        rows = {name: connection.execute(query.encode(), {"schema": schema}) for name, query in DESCRIPTIONS.items()}
        return {
            name: sorted(repr(row).replace(f"{schema}.", "").replace(f'"{schema}"', "") for row in found)
            for name, found in rows.items()
        }


def somebody_sleeps(dsn: str) -> bool:
    """And the server knows of it, so that whoever enqueues rings."""
    held = (
        "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted"
        " AND objsubid = 1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
    )
    try:
        with connected(dsn) as watch:
            return watch.execute(held).fetchone() == (True,)
    except psycopg.OperationalError:
        return False


def cli(*args: str) -> Result:
    return CliRunner().invoke(root, args, prog_name="headrace")


def findings(dsn: str, *args: str) -> dict[str, dict[str, Any]]:
    """What the doctor says of a URL, by the name of the check."""
    found = cli("doctor", dsn, "--json", *args)
    assert found.exit_code in (0, 1), found.output
    return {each["check"]: each for each in json.loads(found.stdout)["findings"]}
