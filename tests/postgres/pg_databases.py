"""Which server the tests use, and the databases of theirs on it.

HEADRACE_TEST_PG is a DSN, whose user may create databases; or ``private``, or a major version as ``17``: a server of
the tests' own. Where it is not set: a server on this machine that lets in without a password, else one of their own.
"""

from __future__ import annotations

import getpass
import os
import secrets
from contextlib import ExitStack
from typing import Any

import psycopg
from pg_binaries import choose
from pg_server import PrivateServer
from pg_url import url_of
from psycopg import sql

from headrace.testing.clock import wait_until

HERE = [
    f"postgresql://{user}@{host}:5432/postgres"
    for host in ("127.0.0.1", "%2Fvar%2Frun%2Fpostgresql")
    for user in dict.fromkeys(("postgres", getpass.getuser()))
]
PREFIX = "headrace_test_"
CLEAN = """
DO $$
DECLARE name text;
BEGIN
    SET LOCAL lock_timeout = '10s';
    FOR name IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
        EXECUTE format('DROP SCHEMA %I CASCADE', name);
    END LOOP;
    CREATE SCHEMA public;
    EXECUTE format('ALTER DATABASE %I RESET ALL', current_database());
END $$
"""
END_OTHERS = """
SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE %s
"""
DEAD = """
SELECT name FROM (SELECT datname AS name FROM pg_database) AS database WHERE starts_with(name, %s) AND NOT EXISTS (
    SELECT FROM pg_stat_activity WHERE starts_with(application_name, %s) AND starts_with(name, application_name))
"""


def end_others(connection: psycopg.Connection[tuple[Any, ...]], application: str = "%") -> int:
    """End the other sessions of its database; how many those were, when they are gone. 13 cannot wait by itself."""
    pids = [pid for pid, _ in connection.execute(END_OTHERS, [application])]
    there = "SELECT FROM pg_stat_activity WHERE pid = ANY(%s)"
    wait_until(lambda: connection.execute(there, [pids]).fetchone() is None)
    return len(pids)


def _may_create(dsn: str) -> bool:
    try:
        with psycopg.connect(dsn, connect_timeout=3) as connection:
            found = connection.execute(
                "SELECT current_setting('server_version_num')::int >= 130000 AND (rolcreatedb OR rolsuper)"
                " FROM pg_roles WHERE rolname = current_user"
            ).fetchone()
    except psycopg.OperationalError:
        return False
    return bool(found and found[0])


def resolve(wanted: str, stack: ExitStack) -> str:
    """The DSN of a server; one started for it ends with ``stack``. LookupError where none is to be had."""
    if wanted and wanted != "private" and not wanted.isdecimal():
        if not _may_create(wanted):
            raise LookupError("HEADRACE_TEST_PG: no PostgreSQL 13 or later answers there that lets create databases")
        return wanted
    if not wanted:
        for dsn in HERE:
            if _may_create(dsn):
                return dsn
    server = PrivateServer(choose(int(wanted) if wanted.isdecimal() else None))
    stack.callback(server.close)
    return server.dsn()


class Databases:
    """Empty databases, for one test each; cleaned when they come back, which is quicker than to make new ones.

    The databases of a run carry its name, and so does a session of its own: one that is there without its session
    belongs to a run that is dead, and is dropped by the next one.
    """

    def __init__(self, wanted: str) -> None:
        self._stack = ExitStack()
        self.server = resolve(wanted, self._stack)
        self.run = f"{PREFIX}{os.getpid()}_{secrets.token_hex(4)}"
        self._admin = psycopg.connect(self.server, autocommit=True, application_name=self.run)
        self._stack.callback(self._admin.close)
        self._free: list[str] = []
        self._made = 0
        self._sweep()

    def _sweep(self) -> None:
        for (name,) in self._admin.execute(DEAD, [PREFIX, PREFIX]).fetchall():
            self._drop(name, force=False)

    def _drop(self, name: str, force: bool) -> None:
        how = sql.SQL("DROP DATABASE IF EXISTS {}" + (" WITH (FORCE)" if force else ""))
        try:
            self._admin.execute(how.format(sql.Identifier(name)))
        except psycopg.errors.ObjectInUse:  # somebody looks at it, or another run drops it just now
            pass

    def take(self) -> str:
        """The URL of a database with nothing in it."""
        if self._free:
            return self._free.pop()
        self._made += 1
        name = f"{self.run}_{self._made}"
        make = sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'")
        self._admin.execute(make.format(sql.Identifier(name)))
        return url_of(self.server, dbname=name)

    def give_back(self, dsn: str) -> None:
        """Ends the sessions that are left in it."""
        with psycopg.connect(dsn, autocommit=True) as owner:
            owner.execute("SET default_transaction_read_only = off; SET synchronous_commit = off")
            end_others(owner)
            owner.execute(CLEAN)
        self._free.append(dsn)

    def close(self) -> None:
        for number in range(1, self._made + 1):
            self._drop(f"{self.run}_{number}", force=True)
        self._stack.close()
