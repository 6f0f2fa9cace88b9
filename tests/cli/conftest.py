"""Commands in this process (quick) and in their own (signals, terminals, start-up), each on a file of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from cli_program import Program
from click.testing import CliRunner, Result

import headrace
from headrace.cli import root
from headrace.queue import Queue

HERE = Path(__file__).parent


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'jobs.db'}"


@pytest.fixture
def env(url: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("HEADRACE_URL", url)
    monkeypatch.syspath_prepend(str(HERE))
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "200"}


@pytest.fixture
def queue(url: str, env: dict[str, str]) -> Iterator[Queue]:
    """The queue "default" of the file that the commands use."""
    with headrace.connect(url) as queue:
        yield queue


@pytest.fixture
def cli(env: dict[str, str]) -> Callable[..., Result]:
    """Run a command in this process."""

    def run(*args: str, input: str | None = None) -> Result:
        return CliRunner().invoke(root, args, prog_name="headrace", input=input)

    return run


@pytest.fixture
def start(env: dict[str, str]) -> Iterator[Callable[..., Program]]:
    programs: list[Program] = []

    def start(*args: str, terminal: bool = False, before: Sequence[str] = ()) -> Program:
        programs.append(Program(args, env, terminal, before))
        return programs[-1]

    yield start
    for program in programs:
        program.clear()
