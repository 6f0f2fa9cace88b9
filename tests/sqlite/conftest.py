"""A fresh file for each test, and the invariants checked on what it left there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import raw
from sqlite_files import open_at

from headrace.queue import Queue


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "jobs.db"
    yield file
    if file.exists():
        raw.check(file)


@pytest.fixture
def opened(path: Path) -> Iterator[Callable[..., Queue]]:
    """Opens handles on the test's file, and closes them behind it."""
    handles: list[Queue] = []

    def make(**settings: Any) -> Queue:
        queue = open_at(path, **settings)
        handles.append(queue)
        return queue

    yield make
    for handle in handles:
        handle.close()
