"""The queue in PostgreSQL obeys the contract."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from back_doors import postgres_state
from pg_databases import Databases
from psycopg import sql
from psycopg.rows import dict_row

from headrace import Queue, connect
from headrace.testing import QueueContract, RawState, VirtualClock
from headrace.testing.machine import exercise

EMPTY = """
DELETE FROM {schema}.jobs; DELETE FROM {schema}.leases; DELETE FROM {schema}.dead; DELETE FROM {schema}.deltas;
DELETE FROM {schema}.archive; DELETE FROM {schema}.queues; UPDATE {schema}.clock SET skew = 0, anchor = NULL
"""


class Schemas:
    """One database with a schema for each queue; emptied when a queue is gone, which is quicker than to make new ones.

    Nothing here has to outlive a crash of the server, so commits do not wait for the disk.
    """

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.made = 0
        self.free: list[str] = []
        self.back_door = psycopg.connect(dsn, autocommit=True, row_factory=dict_row)
        name = sql.Identifier(self.back_door.info.dbname)
        self.back_door.execute(sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(name))
        self.lock = threading.Lock()
        self._keeper = connect(f"{dsn}?schema=keeper", clock=VirtualClock())
        """The connections of a process go with its last queue; so there is always one."""

    def take(self) -> str:
        if self.free:
            return self.free.pop()
        self.made += 1
        return f"c{self.made}"

    def give_back(self, schema: str) -> None:
        with self.lock:
            self.back_door.execute(sql.SQL(EMPTY).format(schema=sql.Identifier(schema)))
        self.free.append(schema)

    def close(self) -> None:
        self._keeper.close()
        self.back_door.close()


@pytest.fixture(scope="module")
def schemas(databases: Databases) -> Iterator[Schemas]:
    dsn = databases.take()
    made = Schemas(dsn)
    yield made
    made.close()
    databases.give_back(dsn)


class TestPostgres(QueueContract):
    @pytest.fixture(autouse=True)
    def _in_schemas(self, schemas: Schemas) -> Iterator[None]:
        self.schemas = schemas
        self.taken: list[str] = []
        yield
        self.empty()

    def empty(self) -> None:
        for schema in self.taken:
            self.schemas.give_back(schema)
        self.taken.clear()

    def make_queue(self, **settings: Any) -> Queue:
        self.taken.append(self.schemas.take())
        return connect(f"{self.schemas.dsn}?schema={self.taken[-1]}", **settings)

    def reopen_queue(self, queue: Queue) -> Queue:
        store: Any = queue.store  # type: ignore[attr-defined]  # where it is, is not part of the contract
        given = {name: getattr(queue.settings, name) for name in queue.settings.__struct_fields__}
        return connect(f"{self.schemas.dsn}?schema={store.schema}", **given)

    def raw_state(self, queue: Queue) -> RawState:
        with self.schemas.lock:
            return postgres_state(queue, self.schemas.back_door)

    def test_any_history_agrees_with_the_reference_model(self) -> None:
        thorough = "HEADRACE_HYPOTHESIS" in os.environ
        exercise(OneByOne(self), None if thorough else 50)  # a call takes twenty times as long here as in memory


class OneByOne:
    """Makes queues of which only the last one is still used."""

    def __init__(self, contract: TestPostgres) -> None:
        self._contract = contract
        self.reopen_queue = contract.reopen_queue
        self.raw_state = contract.raw_state

    def make_queue(self, **settings: Any) -> Queue:
        self._contract.empty()
        return self._contract.make_queue(**settings)
