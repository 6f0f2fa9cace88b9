"""A stage for each test: a file, workers on it, and a check of what must hold when they are gone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit import HERE, Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {
        **os.environ,
        "HEADRACE_URL": f"sqlite:///{tmp_path / 'jobs.db'}?busy_timeout=5",
        "LEDGER": str(tmp_path / "ledger"),
        "PYTHONPATH": os.pathsep.join(paths),
        "COLUMNS": "200",
    }
    stage = Stage(tmp_path, env)
    try:
        yield stage
    finally:
        stage.clear()
    stage.check()
