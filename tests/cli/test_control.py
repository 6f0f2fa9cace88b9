"""Pause, resume, cancel, and the figures."""

from __future__ import annotations

import io
import json
import re
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from cli_program import LIMIT, Program
from click.testing import Result
from rich.console import Console

import headrace
from headrace import Job, Stats
from headrace.cli.stats import as_json, as_table
from headrace.queue import Queue
from headrace.testing.clock import wait_until

Cli = Callable[..., Result]


def test_a_paused_queue_hands_out_nothing_until_resumed(cli: Cli, queue: Queue) -> None:
    queue.enqueue(Job(id="a"))
    assert "paused" in cli("pause").stdout
    assert queue.dequeue(0) is None
    assert json.loads(cli("resume", "--json").stdout) == {"queue": "default", "paused": False}
    assert queue.dequeue(0) is not None


def test_the_only_queue_there_is_need_not_be_named(cli: Cli, url: str) -> None:
    with headrace.connect(url, queue="mail") as mail:
        mail.stats()
        assert json.loads(cli("pause", "--json").stdout) == {"queue": "mail", "paused": True}
        assert mail.stats().paused
    assert cli("dead", "list").stdout == "queue 'mail': no dead letters\n"


def test_of_several_queues_the_default_is_meant_where_none_is_named(cli: Cli, url: str) -> None:
    with headrace.connect(url, queue="mail") as mail, headrace.connect(url, queue="reports") as reports:
        assert (mail.stats().paused, reports.stats().paused) == (False, False)
        result = cli("pause")
        assert result.exit_code == 1
        assert "'default' is not in" in result.stderr
        assert "there is mail, reports" in result.stderr
        with headrace.connect(url) as default:
            default.stats()
            assert cli("pause").exit_code == 0
            assert default.stats().paused
        assert (mail.stats().paused, reports.stats().paused) == (False, False)


def test_a_waiting_job_is_cancelled(cli: Cli, queue: Queue) -> None:
    queue.enqueue(Job(id="a"))
    result = cli("cancel", "a", "--json")
    assert json.loads(result.stdout) == {"queue": "default", "id": "a", "cancelled": True, "running": False}
    assert queue.stats().cancelled == 1


def test_a_running_job_is_told(cli: Cli, queue: Queue) -> None:
    queue.enqueue(Job(id="a"))
    job = queue.dequeue(0)
    assert job is not None
    result = cli("cancel", "a")
    assert result.exit_code == 0
    assert "heartbeat" in result.stdout
    assert queue.extend(job, 30).cancelled


def test_a_job_that_is_done_or_dead_cannot_be_cancelled(cli: Cli, queue: Queue) -> None:
    queue.enqueue(Job(id="a"))
    job = queue.dequeue(0)
    assert job is not None
    queue.bury(job, "no way")
    assert "dead already" in cli("cancel", "a").stderr
    result = cli("cancel", "zz", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["cancelled"] is False


def test_stats_show_every_queue_of_the_file(cli: Cli, queue: Queue, url: str) -> None:
    queue.enqueue(Job())
    with headrace.connect(url, queue="mail") as mail:
        mail.enqueue(Job())
    shown = json.loads(cli("stats", "--json").stdout)
    assert [(each["queue"], each["ready"], each["unaccounted"]) for each in shown] == [
        ("default", 1, 0),
        ("mail", 1, 0),
    ]
    assert [each["queue"] for each in json.loads(cli("stats", "--queue", "mail", "--json").stdout)] == ["mail"]
    table = cli("stats").stdout
    assert "default" in table
    assert "mail" in table


def test_looking_makes_no_file(cli: Cli, tmp_path: Path) -> None:
    for command in (["stats"], ["stats", "--queue", "a"], ["dead", "list"], ["pause"], ["resume"], ["cancel", "a"]):
        result = cli(*command)
        assert result.exit_code == 4
        assert "no such file" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_looking_makes_no_queue(cli: Cli, queue: Queue, url: str) -> None:
    for command in (
        ["stats", "--queue", "typo"],
        ["dead", "list", "--queue", "typo"],
        ["cancel", "a", "--queue", "typo"],
        ["pause", "--queue", "typo"],
        ["resume", "--queue", "typo"],
    ):
        result = cli(*command)
        assert result.exit_code == 1
        assert "'typo'" in result.stderr
        assert "default" in result.stderr
    assert [each["queue"] for each in json.loads(cli("stats", "--json").stdout)] == ["default"]


def test_a_file_of_another_program_is_left_as_it_is(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    with closing(sqlite3.connect(file)) as other:
        other.execute("create table songs (title)")
    before = file.read_bytes()
    for command in (["stats"], ["stats", "--json"], ["dead", "list"], ["pause"], ["cancel", "a"], ["check"]):
        result = cli(*command)
        assert result.exit_code == 1
        assert "holds no queues; is " in result.stderr
        assert result.stdout == ""
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def drawn(stats: Stats, width: int = 200) -> str:
    screen = Console(width=width, force_terminal=True, color_system="standard", file=io.StringIO())
    screen.print(as_table({"default": stats}))
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


def test_a_job_that_is_unaccounted_for_is_red() -> None:
    good, bad = Stats(enqueued=1, ready=1), Stats(enqueued=2, ready=1)
    assert (as_json("a", good)["unaccounted"], as_json("a", bad)["unaccounted"]) == (0, 1)
    assert "\x1b[1;31m" in drawn(bad)
    assert "31m" not in drawn(good)


def test_each_column_has_a_head_of_one_line_on_a_small_screen() -> None:
    busy = Stats(ready=123_456, delayed=1_000, inflight=100, dead=1_000, acked=12_345_678, retried=1_000)
    head = next(line for line in drawn(busy, 80).splitlines() if "queue" in line)
    assert re.sub(r"\x1b\[[0-9;]*m", "", head).split() == [
        "queue", "wait", "ready", "delayed", "inflight", "dead", "acked", "retried", "lost",
    ]  # fmt: skip


def test_the_oldest_wait_is_readable() -> None:
    assert "3 min 20 s" in drawn(Stats(enqueued=1, ready=1, oldest_ready=200.4))


def test_a_watch_is_one_line_of_json_each_time_until_ctrl_c(
    start: Callable[..., Program], queue: Queue, env: dict[str, str]
) -> None:
    queue.enqueue(Job())
    watch = start("stats", "--watch", "--json", "--interval", "0.1")
    wait_until(lambda: watch.output.count("\n") >= 3, LIMIT)
    watch.signal(signal.SIGINT)
    assert watch.ends() == 0
    assert {json.loads(line)[0]["ready"] for line in watch.output.splitlines()} == {1}


def test_a_watch_at_a_terminal_draws_one_table_over_and_over(start: Callable[..., Program], queue: Queue) -> None:
    watch = start("stats", "--watch", "--interval", "0.1", terminal=True)
    watch.says("acked")
    queue.pause()
    watch.says("(paused)")
    watch.press_ctrl_c()
    assert watch.ends() == 0
    assert "Traceback" not in watch.output
