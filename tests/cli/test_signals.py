"""Ending a worker: the first signal drains, the second ends at once, and no job is lost by either."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import cli_shop
import pytest
from cli_program import LIMIT, Program

import headrace
from headrace.job import State, Stats
from headrace.testing.clock import wait_until

Start = Callable[..., Program]
KINDS = ["slow_async", "slow_thread", "slow_process"]


class Slow:
    """One job that runs until it is let go, and what its own ledger says of it."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url

    def enqueue(self, task: str) -> None:
        with cli_shop.app:
            cli_shop.app.tasks[f"cli_shop:{task}"].options(id="slow").enqueue(folder=str(self.folder))

    @property
    def ledger(self) -> list[str]:
        path = self.folder / "ledger"
        return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []

    def until_started(self) -> None:
        wait_until(lambda: self.ledger == ["start"], LIMIT)

    @property
    def pid(self) -> int:
        return int((self.folder / "ledger").read_text().split()[1])

    def let_go(self) -> None:
        (self.folder / "go").touch()

    def stats(self) -> Stats:
        with headrace.connect(self.url, queue="slow") as queue:
            return queue.stats()

    def job(self) -> headrace.Job | None:
        with headrace.connect(self.url, queue="slow") as queue:
            return queue.find("slow")


@pytest.fixture
def slow(tmp_path: Path, url: str, env: dict[str, str]) -> Slow:
    return Slow(tmp_path, url)


@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_at_a_terminal_lets_running_handlers_finish(kind: str, slow: Slow, start: Start) -> None:
    slow.enqueue(kind)
    worker = start("worker", "cli_shop:app", "--queue", "slow", terminal=True)
    slow.until_started()
    worker.press_ctrl_c()
    worker.says("a second signal ends at once")
    slow.let_go()
    assert worker.ends() == 0
    assert slow.ledger == ["start", "end"]
    assert slow.stats().acked == 1
    assert "Traceback" not in worker.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_signal_to_the_group_drains(number: int, slow: Slow, start: Start) -> None:
    slow.enqueue("slow_process")
    worker = start("worker", "cli_shop:app", "--queue", "slow")
    slow.until_started()
    worker.signal(number)
    worker.says(f"{signal.Signals(number).name}: finishing what runs")
    worker.says("a second signal ends at once")
    slow.let_go()
    assert worker.ends() == 0
    assert slow.stats().acked == 1


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("slow_async", signal.SIGINT),
        ("slow_async", signal.SIGHUP),
        ("slow_thread", signal.SIGTERM),
        ("slow_process", signal.SIGINT),
    ],
)
def test_the_second_signal_ends_at_once_and_gives_the_job_back(
    kind: str, number: int, slow: Slow, start: Start
) -> None:
    slow.enqueue(kind)
    worker = start("worker", "cli_shop:app", "--queue", "slow")
    slow.until_started()
    worker.signal(number)
    worker.says("a second signal ends at once")
    second = time.monotonic()
    worker.signal(number)
    assert worker.ends() == 128 + number
    assert time.monotonic() - second < 4
    assert "Traceback" not in worker.output
    job = slow.job()
    assert job is not None
    assert slow.stats().dead == 0
    # A thread cannot be stopped: its job may be left to its lease.
    assert (job.state, job.attempt) == (State.READY, 0) or (kind == "slow_thread" and job.state is State.INFLIGHT)


def test_the_second_signal_ends_a_worker_whose_loop_is_blocked(slow: Slow, start: Start) -> None:
    slow.enqueue("blocks_the_loop")
    worker = start("worker", "cli_shop:app", "--queue", "slow")
    slow.until_started()
    worker.signal(signal.SIGINT)
    worker.says("a second signal ends at once")
    worker.signal(signal.SIGINT)
    assert worker.ends() == 130
    stats = slow.stats()
    assert (stats.dead, stats.inflight + stats.ready) == (0, 1)


def test_a_drain_that_takes_too_long_gives_the_job_back_and_says_so(slow: Slow, start: Start) -> None:
    slow.enqueue("slow_async")
    worker = start("worker", "cli_shop:app", "--queue", "slow", "--drain", "0.1")
    slow.until_started()
    worker.signal(signal.SIGTERM)
    assert worker.ends() == 128 + signal.SIGTERM
    assert "1 given back" in worker.output
    job = slow.job()
    assert job is not None
    assert (job.state, job.attempt) == (State.READY, 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_idle_worker_ends_at_the_first_signal(number: int, slow: Slow, start: Start) -> None:
    worker = start("worker", "cli_shop:app")
    worker.says("pool headrace-slow: running")
    first = time.monotonic()
    worker.signal(number)
    assert worker.ends() == 0
    assert time.monotonic() - first < 3


def test_no_child_outlives_its_worker(slow: Slow, start: Start) -> None:
    slow.enqueue("slow_process")
    worker = start("worker", "cli_shop:app", "--queue", "slow")
    slow.until_started()
    assert slow.pid != worker.process.pid
    worker.process.kill()
    worker.ends()
    wait_until(lambda: not alive(slow.pid), LIMIT)


def test_under_nohup_a_worker_that_loses_its_terminal_goes_on_working(slow: Slow, start: Start) -> None:
    worker = start("worker", "cli_shop:app", before=["sh", "-c", 'trap "" HUP; exec "$@"', "sh"])
    worker.says("pool headrace-slow: running")
    worker.signal(signal.SIGHUP)
    slow.let_go()
    slow.enqueue("slow_async")
    wait_until(lambda: slow.stats().acked == 1, LIMIT)
    worker.signal(signal.SIGTERM)
    assert worker.ends() == 0


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        # One that ended, and that nobody has asked about yet, still has its number.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
