"""A stage for each test: a store, workers on it, and a check of what must hold when they are gone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kit import HERE, Stage


def set_up(folder: Path, url: str) -> Stage:
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {
        **os.environ,
        "HEADRACE_URL": url,
        "LEDGER": str(folder / "ledger"),
        "PYTHONPATH": os.pathsep.join(paths),
        "COLUMNS": "200",
    }
    return Stage(folder, env)


def strike(stage: Stage) -> None:
    try:
        stage.check()
    finally:
        stage.queue.close()


@pytest.fixture
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """On SQLite, unless a test asks for ``postgres``."""
    if getattr(request, "param", "sqlite") == "postgres":
        url = request.getfixturevalue("dsn")
    else:
        url = f"sqlite:///{tmp_path / 'jobs.db'}?busy_timeout=5"
    stage = set_up(tmp_path, url)
    try:
        yield stage
    finally:
        stage.clear()
    strike(stage)


@pytest.fixture
def stage_on(
    tmp_path: Path, private_server: object, proxy: object, bouncer: object
) -> Iterator[Callable[[str], Stage]]:
    """Sets up a stage on the store of a URL; it is struck before what it stands on."""
    with ExitStack() as stack:

        def make(url: str) -> Stage:
            stage = set_up(tmp_path, url)
            stack.callback(strike, stage)
            stack.callback(stage.clear)
            return stage

        yield make
