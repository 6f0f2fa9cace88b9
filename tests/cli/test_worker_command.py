"""The worker command: which queues, when it ends, what it says, and what it keeps to itself."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import cli_shop
import pytest
from cli_program import COMMAND, LIMIT, Program
from click.testing import Result

import headrace
from headrace import Job
from headrace.pool import Pool, PoolFailed, run_pools_async
from headrace.queue import Queue
from headrace.testing.clock import wait_until

Cli = Callable[..., Result]
Start = Callable[..., Program]


def enqueue(task: str, **arguments: object) -> None:
    with cli_shop.app:
        cli_shop.app.tasks[task].enqueue_many([arguments])


def test_a_burst_runs_what_is_ready_in_every_queue_and_ends(cli: Cli, queue: Queue) -> None:
    enqueue("cli_shop:mail", to="ann")
    enqueue("cli_shop:mail", to="bob")
    enqueue("reports.daily")
    with cli_shop.app:
        cli_shop.app.tasks["cli_shop:mail"].options(delay=3600).enqueue(to="late")
    result = cli("--json", "worker", "cli_shop:app", "--burst")
    assert result.exit_code == 0, result.output
    totals = json.loads(result.stdout)
    assert {name: each["acked"] for name, each in totals.items()} == {"default": 2, "reports": 1, "slow": 0, "stuck": 0}
    stats = queue.stats()
    assert (stats.acked, stats.delayed, stats.unaccounted) == (2, 1, 0)


def test_a_burst_does_not_wait_for_a_paused_queue(start: Start, queue: Queue) -> None:
    enqueue("cli_shop:mail", to="ann")
    queue.pause()
    assert start("worker", "cli_shop:app", "--burst", "--queue", "default").ends() == 0
    assert queue.stats().ready == 1


def test_only_the_named_queues_are_served(cli: Cli, queue: Queue) -> None:
    enqueue("cli_shop:mail", to="ann")
    enqueue("reports.daily")
    result = cli("worker", "cli_shop:app", "--burst", "--queue", "reports")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert queue.stats().ready == 1


def test_a_queue_that_no_task_goes_to_is_refused_and_not_made(cli: Cli, url: str) -> None:
    result = cli("worker", "cli_shop:app", "--burst", "--queue", "default", "--queue", "reprots")
    assert result.exit_code == 3
    assert "'reprots'" in result.stderr
    assert "reports" in result.stderr
    assert not Path(url.removeprefix("sqlite:///")).exists()
    assert cli("worker", "cli_shop:app", "--burst", "--url", "memory://", "--queue", "reprots").exit_code == 3


def test_a_queue_that_is_there_is_served_though_no_task_goes_there(cli: Cli, queue: Queue, url: str) -> None:
    assert cli("enqueue", "cli_shop:app", "daily", "--queue", "nightly").exit_code == 0
    result = cli("worker", "cli_shop:app", "--burst", "--queue", "nightly")
    assert result.exit_code == 0
    assert "no task of cli_shop:app goes to queue 'nightly'" in result.stderr
    with headrace.connect(url, queue="nightly") as nightly:
        assert nightly.stats().acked == 1


def test_a_burst_says_what_it_left(cli: Cli, queue: Queue, url: str) -> None:
    enqueue("cli_shop:mail", to="ann")
    with cli_shop.app:
        cli_shop.app.tasks["reports.daily"].options(delay=3600).enqueue()
    queue.pause()
    burst = ["worker", "cli_shop:app", "--burst", "--queue", "default", "--queue", "reports"]
    said = cli(*burst).stderr.splitlines()
    assert said[-1] == "headrace: left: 1 ready in 'default', which is paused; 1 delayed in 'reports'"
    queue.resume()
    assert queue.dequeue(0) is not None
    assert (
        cli(*burst).stderr.splitlines()[-1] == "headrace: left: 1 of 'default' held elsewhere; 1 delayed in 'reports'"
    )
    assert "left:" not in cli("worker", "cli_shop:app", "--burst", "--queue", "stuck").stderr


def test_the_lease_given_is_the_lease_taken(start: Start, queue: Queue, url: str, tmp_path: Path) -> None:
    with cli_shop.app:
        handle = cli_shop.app.tasks["cli_shop:slow_async"].enqueue(folder=str(tmp_path))
    worker = start("worker", "cli_shop:app", "--queue", "slow", "--lease", "600", "--burst")
    try:
        worker.says("running")
        with headrace.connect(url, queue="slow") as slow:
            wait_until(lambda: slow.stats().inflight == 1, LIMIT)
            job = slow.find(handle.id)
        assert job is not None
        assert job.lease_until is not None
        assert job.lease_until - datetime.now(UTC) > timedelta(seconds=500)
    finally:
        (tmp_path / "go").touch()
    assert worker.ends() == 0


def test_a_memory_queue_has_the_lease_of_its_app(cli: Cli, queue: Queue) -> None:
    result = cli("worker", "cli_shop:app", "--url", "memory://", "--lease", "5", "--burst")
    assert result.exit_code == 3
    assert "lease" in result.stderr
    assert cli("worker", "cli_shop:app", "--url", "memory://", "--burst").exit_code == 0


def test_queues_that_end_with_the_worker_are_warned_of_in_one_line(cli: Cli, url: str) -> None:
    burst = ["worker", "cli_shop:app", "--burst", "--queue", "default", "--queue", "reports"]
    [told] = [each for each in cli(*burst, "--url", "memory://").stderr.splitlines() if "within this process" in each]
    assert "alone: default, reports;" in told
    assert "within this process" not in cli(*burst, "--url", url).stderr


@pytest.mark.parametrize("debug", [[], ["--debug"]])
def test_a_failing_job_shows_its_error_and_not_its_arguments(start: Start, queue: Queue, debug: list[str]) -> None:
    enqueue("cli_shop:fails", password="hunter2")
    worker = start("worker", "cli_shop:app", "--burst", *debug)
    assert worker.ends() == 0
    assert "[bold]possible[/bold]" in worker.output
    assert "hunter2" not in worker.output
    assert "\x1b" not in worker.output
    assert queue.stats().dead == 1


def test_a_terminal_gets_a_live_line_below_the_logs(start: Start, queue: Queue) -> None:
    enqueue("cli_shop:mail", to="ann")
    enqueue("cli_shop:fails", password="hunter2")
    worker = start("worker", "cli_shop:app", terminal=True)
    worker.says("0 running, 1 acked, 1 nacked")
    worker.press_ctrl_c()
    assert worker.ends() == 0
    assert "[bold]possible[/bold]" in worker.output
    assert "\x1b]0;not" not in worker.output
    assert "hunter2" not in worker.output


def test_a_worker_that_cannot_go_on_ends_with_5(start: Start, queue: Queue) -> None:
    for _ in range(24):
        enqueue("cli_shop:never_ends")
    worker = start("worker", "cli_shop:app", "--queue", "stuck", "--drain", "0")
    assert worker.ends() == 5
    assert worker.output.splitlines()[-1].startswith("headrace: the pool stopped")


async def test_one_pool_that_fails_ends_the_others() -> None:
    ended = asyncio.Event()

    async def deaf(job: Job) -> None:
        while not ended.is_set():
            try:
                await ended.wait()
            except asyncio.CancelledError:
                continue

    async def fine(job: Job) -> None: ...

    with headrace.connect("memory://") as stuck, headrace.connect("memory://", queue="other") as other:
        stuck.enqueue(Job())
        pools = {
            "stuck": Pool(stuck, deaf, workers=1, timeout=0.01, zombies=0, drain=0.1),
            "other": Pool(other, fine, workers=1),
        }
        with pytest.raises(PoolFailed):
            async with asyncio.timeout(LIMIT):
                await run_pools_async(pools.values())
        assert pools["other"].health().phase == "stopped"
        ended.set()


def test_a_long_replay_shows_its_progress(start: Start, url: str, queue: Queue) -> None:
    with headrace.connect(url, lease=0.001) as brief:
        brief.enqueue_many([Job(max_attempts=1) for _ in range(501)])
        brief.dequeue_many(501)
        while brief.stats().dead < 501:
            brief.dequeue(0.001)
    replay = start("dead", "replay", "--all", terminal=True)
    replay.says("501 replayed")
    assert replay.ends() == 0
    assert "replaying" in replay.output
    assert queue.stats().ready == 501


def test_a_reader_that_goes_away_is_no_error(env: dict[str, str], queue: Queue) -> None:
    queue.stats()
    line = ["sh", "-c", '"$@" | head -n 1', "sh", *COMMAND, "stats", "--watch", "--json", "--interval", "0.1"]
    done = subprocess.run(line, env=env, capture_output=True, text=True, timeout=LIMIT)
    assert json.loads(done.stdout)[0]["queue"] == "default"
    assert done.stderr == ""


def test_two_workers_share_a_file_and_run_each_job_once(start: Start, queue: Queue) -> None:
    for each in range(40):
        enqueue("cli_shop:mail", to=str(each))
    workers = [start("worker", "cli_shop:app", "--burst", "--queue", "default") for _ in range(2)]
    assert [worker.ends() for worker in workers] == [0, 0]
    stats = queue.stats()
    assert (stats.acked, stats.enqueued, stats.unaccounted, stats.expired_leases) == (40, 40, 0, 0)


def test_an_app_that_sets_up_its_own_logging_keeps_it(start: Start, env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "own_logs.py").write_text(
        "import logging\nlogging.basicConfig(format='MINE %(message)s', level=logging.INFO)\nfrom cli_shop import app\n"
    )
    env["PYTHONPATH"] += f":{tmp_path}"
    worker = start("worker", "own_logs:app", "--burst")
    assert worker.ends() == 0
    assert "MINE pool headrace-default: running" in worker.output
    assert " INFO " not in worker.output
