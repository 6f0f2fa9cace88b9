"""The queue in an SQLite file obeys the contract."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from back_doors import sqlite_state

from headrace import Queue, connect
from headrace.testing import QueueContract, RawState


class TestSqlite(QueueContract):
    folder: Path
    number = itertools.count()

    @pytest.fixture(autouse=True)
    def _in_a_folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make_queue(self, **settings: Any) -> Queue:
        return connect(f"sqlite:///{self.folder}/{next(self.number)}.db", **{"synchronous": "normal", **settings})

    def reopen_queue(self, queue: Queue) -> Queue:
        store: Any = queue.store  # type: ignore[attr-defined]  # where the file is, is not part of the contract
        given = {name: getattr(queue.settings, name) for name in queue.settings.__struct_fields__}
        return connect(f"sqlite:///{store._database.path}", **given)

    def raw_state(self, queue: Queue) -> RawState:
        return sqlite_state(queue)
