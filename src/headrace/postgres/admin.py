"""What an operator does with the tables: a look at what is there, and migrations. Nothing is made by looking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import ConfigError
from . import schema as tables
from .connections import Connection, masked, stock
from .figures import Figures, look
from .options import Options
from .statements import statements

T = TypeVar("T")
PATIENCE = 5.0
"""Seconds for which a person waits for a server that is away; a queue is more patient."""
LONG = 120.0
"""The least, once the server has answered, for what reads or rewrites whole tables."""


class Admin:
    """The tables in one schema. ``given``: the settings in a URL. Keeps no connection."""

    def __init__(self, dsn: str, given: dict[str, Any]) -> None:
        options, _ = Options.make(given, PATIENCE)
        self.schema = options.schema
        self.direct = options.direct
        self.stock = stock(dsn, 1, options.patience)
        self._patient = stock(dsn, 1, max(options.patience, LONG))
        self.sql = statements(self.schema)

    def __str__(self) -> str:
        return f"schema {self.schema} of {masked(self.stock.dsn)}"

    def run(self, work: Callable[[Connection], T]) -> T:
        return self.stock.run(lambda connection, again: work(connection))

    def run_long(self, work: Callable[[Connection], T]) -> T:
        self.run(lambda connection: None)
        return self._patient.run(lambda connection, again: work(connection))

    def queue_names(self) -> list[str]:
        """By name; none where there are no tables."""
        there = "SELECT FROM pg_tables WHERE schemaname = %s AND tablename = 'queues'"

        def work(connection: Connection) -> list[str]:
            if connection.execute(there, (self.schema,)).fetchone() is None:
                return []
            return [row[0] for row in connection.execute(self.sql["queue_names"])]

        return self.run(work)

    def migrate(self) -> list[str]:
        """Make or upgrade the tables; the names of the migrations that were missing."""
        return self.run_long(lambda connection: tables.migrate(connection, self.schema))

    def script(self) -> str:
        """What ``migrate`` would do, as SQL."""
        return self.run(lambda connection: tables.script(tables.pending(connection, self.schema), self.schema))

    def version(self) -> str:
        """Of the server."""
        return self.run(lambda connection: connection.info.parameter_status("server_version") or "?").split()[0]

    def refuse_old(self) -> None:
        """ConfigError where migrations are missing."""
        if self.run(lambda connection: tables.pending(connection, self.schema)):
            raise ConfigError(f"{self}: the tables are missing or old: run 'headrace migrate'")

    def look(self) -> Figures:
        """What the doctor wants to know."""
        return self.run_long(lambda connection: look(connection, self.sql, self.schema, self.direct is not None))

    def archived(self, queue: str, limit: int, id: str | None = None) -> list[tuple[Any, ...]]:
        """Done jobs, the last one first, in the order of ``archived.sql``; moments are microseconds since 1970."""
        given = {"name": queue, "limit": limit, "id": id}
        return self.run(lambda connection: connection.execute(self.sql["archived"], given, binary=True).fetchall())
