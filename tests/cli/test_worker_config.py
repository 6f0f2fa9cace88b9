"""A worker with several pools: from a file, balanced, and larger or smaller at run time."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import cli_shop
import pytest
from cli_program import LIMIT, Program
from click.testing import Result

import headrace
from headrace import Job
from headrace.queue import Queue
from headrace.testing.clock import wait_until

Cli = Callable[..., Result]
Start = Callable[..., Program]


@pytest.fixture
def config(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        path = tmp_path / "workers.toml"
        path.write_text(text)
        return str(path)

    return write


def enqueue(task: str, **arguments: object) -> None:
    with cli_shop.app:
        cli_shop.app.tasks[task].enqueue_many([arguments])


def test_each_pool_of_the_file_serves_its_queue(cli: Cli, queue: Queue, config: Callable[[str], str]) -> None:
    enqueue("cli_shop:mail", to="ann")
    enqueue("reports.daily")
    path = config(
        """
        [[pool]]
        app = "cli_shop:app"
        workers = 2

        [[pool]]
        app = "cli_shop:app"
        queue = "reports"
        name = "nightly"
        balance = { min = 1, max = 3 }
        schedule = { zone = "Europe/Paris", ranges = { "22:00-06:00" = { min = 1, max = 8 } } }
        """
    )
    result = cli("--json", "worker", "--config", path, "--burst")
    assert result.exit_code == 0, result.output
    assert {name: each["acked"] for name, each in json.loads(result.stdout).items()} == {"default": 1, "nightly": 1}
    assert "default (2), nightly (1 to 3)" in result.stderr


def test_a_queue_that_no_task_goes_to_is_refused_with_its_table(
    cli: Cli, url: str, config: Callable[[str], str]
) -> None:
    path = config('[[pool]]\napp = "cli_shop:app"\nqueue = "reprots"\n')
    result = cli("worker", "--config", path, "--burst")
    assert result.exit_code == 3
    for text in (path, "'reprots'", "its tasks go to default, reports"):
        assert text in result.stderr
    assert not Path(url.removeprefix("sqlite:///")).exists()


HANDLERS = """
import headrace
from headrace import Job
from headrace.pool import chain, transit

seen = []


def look(job: Job) -> None:
    seen.append(job.id)


archive = chain(look, transit(headrace.connect("{url}", queue="archive")))
number = 3


def generator(job: Job):
    yield
"""


@pytest.fixture
def handlers(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "own_handlers.py").write_text(HANDLERS.replace("{url}", url))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    import sys

    module = sys.modules.pop("own_handlers", None)
    if module is not None:
        module.archive._steps[-1][0]._to.close()


@pytest.mark.usefixtures("handlers")
def test_a_pool_may_have_a_handler_in_place_of_an_app(
    cli: Cli, queue: Queue, url: str, config: Callable[[str], str]
) -> None:
    queue.enqueue(Job(b"anything", id="a"))
    path = config('[[pool]]\nhandler = "own_handlers:archive"\nlease = 60\n')
    result = cli("worker", "--config", path, "--burst")
    assert result.exit_code == 0, result.output
    with headrace.connect(url, queue="archive") as archive:
        moved = archive.dequeue(0)
    assert moved is not None
    assert (moved.id, moved.payload) == ("a", b"anything")


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('app = "cli_shop:nothing"', "has no 'nothing'"),
        ('app = "cli_shop:empty"', "has no tasks"),
        ('app = "cli_shop:number"', "not a headrace.App"),
        ('handler = "own_handlers:nothing"', "has no 'nothing'"),
        ('handler = "own_handlers:number"', "is not callable"),
        ('handler = "own_handlers:generator"', "generator function"),
        ('handler = "own_handlers:archive"\nprocess = true', "a process cannot import it"),
        ('app = "cli_shop:app"\nworkers = 0', "workers: 0 is not a whole number from 1"),
        ('app = "cli_shop:app"\nworkers = 4\nbalance = { min = 1, max = 2 }', "workers: 4"),
        ('app = "cli_shop:app"\ntimeout = "5"', "timeout: '5' is not a number of seconds"),
        ('app = "cli_shop:app"\ndrain = -1', "drain: -1 is not a number of seconds"),
        ('app = "cli_shop:app"\nretry = "sometimes"', "retry: 'sometimes'"),
        ('app = "cli_shop:app"\nlease = 0', "lease: 0"),
        ('app = "cli_shop:app"\nwrokers = 4', "wrokers = 4: no such key"),
    ],
)
def test_a_mistake_in_the_file_is_one_line_and_exit_code_3(
    cli: Cli, queue: Queue, config: Callable[[str], str], table: str, says: str
) -> None:
    path = config(f'[[pool]]\napp = "cli_shop:app"\nqueue = "reports"\n[[pool]]\n{table}\n')
    result = cli("worker", "--config", path, "--burst")
    assert result.exit_code == 3, result.output
    last = result.stderr.splitlines()[-1]
    assert f"{path}: [[pool]] 2: " in last
    assert says in last


def test_a_file_that_is_not_there_is_exit_code_3(cli: Cli) -> None:
    result = cli("worker", "--config", "no-such.toml")
    assert result.exit_code == 3
    assert "no-such.toml: cannot be read" in result.stderr


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([], "MODULE:APP or --config"),
        (["cli_shop:app", "--config", "x.toml"], "MODULE:APP or --config"),
        (["--config", "x.toml", "--workers", "2"], "--workers does not go with --config"),
        (["--config", "x.toml", "--queue", "a"], "--queue does not go with --config"),
        (["--config", "x.toml", "--min", "0"], "--min does not go with --config"),
        (["cli_shop:app", "--min", "0"], "--min needs --max"),
        (["cli_shop:app", "--target-age", "2"], "--target-age needs --max"),
        (["cli_shop:app", "--workers", "2", "--max", "3"], "either --workers or --max"),
    ],
)
def test_options_that_contradict_each_other_are_exit_code_2(cli: Cli, args: list[str], says: str) -> None:
    result = cli("worker", *args)
    assert result.exit_code == 2
    assert says in result.stderr


def test_a_worker_may_be_balanced_from_the_command_line(cli: Cli, queue: Queue) -> None:
    for _ in range(20):
        enqueue("cli_shop:mail", to="ann")
    result = cli("worker", "cli_shop:app", "--queue", "default", "--max", "4", "--target-age", "0.5", "--burst")
    assert result.exit_code == 0, result.output
    assert "1 to 4 at once" in result.stderr
    assert queue.stats().acked == 20


def test_limits_that_make_no_sense_are_exit_code_3(cli: Cli, queue: Queue) -> None:
    result = cli("worker", "cli_shop:app", "--min", "5", "--max", "4", "--burst")
    assert result.exit_code == 3
    assert "min: 5 is more than max, 4" in result.stderr


def test_sigttin_gives_a_worker_one_more_and_sigttou_takes_it_back(
    start: Start, queue: Queue, url: str, tmp_path: Path
) -> None:
    for _ in range(3):
        enqueue("cli_shop:slow_async", folder=str(tmp_path))
    worker = start("worker", "cli_shop:app", "--queue", "slow", "--workers", "1")
    with headrace.connect(url, queue="slow") as slow:
        wait_until(lambda: slow.stats().inflight == 1, LIMIT)
        worker.signal(signal.SIGTTIN)
        worker.says("one worker more in each pool")
        wait_until(lambda: slow.stats().inflight == 2, LIMIT)
        worker.signal(signal.SIGTTOU)
        worker.says("one worker fewer in each pool")
        (tmp_path / "go").touch()
        wait_until(lambda: slow.stats().acked == 3, LIMIT)
    worker.signal(signal.SIGTERM)
    assert worker.ends() == 0
