"""Enqueueing from the command line: arguments by annotation, options, and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import pytest
from click.testing import Result

from headrace import Job, State
from headrace.queue import Queue

Cli = Callable[..., Result]


def enqueued(cli: Cli, queue: Queue, *args: str, input: str | None = None) -> Job:
    result = cli("enqueue", "cli_shop:app", *args, input=input)
    assert result.exit_code == 0, result.output
    job = queue.find(result.stdout.strip())
    assert job is not None
    return job


def arguments(job: Job) -> object:
    return msgspec.json.decode(job.payload)["args"]


def test_the_id_is_printed_and_nothing_else(cli: Cli, queue: Queue) -> None:
    result = cli("enqueue", "cli_shop:app", "mail", "--arg", "to=ann", "--id", "a1")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "a1\n", "")


def test_json_in_front_asks_for_a_json_answer(cli: Cli, queue: Queue) -> None:
    result = cli("--json", "enqueue", "cli_shop:app", "mail", "--json", '{"to": "ann"}', "--id", "a1")
    assert json.loads(result.stdout) == {"id": "a1", "queue": "default", "task": "cli_shop:mail"}


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("to=5", "5"),
        ("to=a=b", "a=b"),
        ("to=", ""),
        ("to=é € 𝄞", "é € 𝄞"),
        ("copies=5", 5),
        ("copies=123456789012345678901234567890", 123456789012345678901234567890),
        ("urgent=true", True),
        ("when=2026-03-01T08:30:00+01:00", "2026-03-01T08:30:00+01:00"),
        ("when=null", None),
        ("price=1.10", "1.10"),
        ('address={"street": "Mill Lane", "house": 7}', {"street": "Mill Lane", "house": 7}),
        ('tags=["a", "b"]', ["a", "b"]),
        ("anything=5", "5"),
    ],
)
def test_an_argument_is_read_as_its_annotation_says(cli: Cli, queue: Queue, pair: str, value: object) -> None:
    name = pair.partition("=")[0]
    more = [] if name == "to" else ["--arg", "to=ann"]
    job = enqueued(cli, queue, "mail", "--arg", pair, *more)
    stored = arguments(job)
    assert isinstance(stored, dict)
    assert stored[name] == value


@pytest.mark.parametrize(
    ("pair", "place"),
    [
        ("copies=many", "args.copies"),
        ("copies=05", "args.copies"),
        ("copies=NaN", "args.copies"),
        ("urgent=yes", "args.urgent"),
        ("when=yesterday", "args.when"),
        ("tags=[1]", "args.tags[0]"),
        ('address={"street": "Mill Lane"}', "house"),
        ("price=NaN", "args.price"),
        ("colour=red", "colour"),
        ("to=a\x00b", "args.to"),
    ],
)
def test_an_argument_of_the_wrong_type_is_refused_and_nothing_stored(
    cli: Cli, queue: Queue, pair: str, place: str
) -> None:
    more = [] if pair.startswith("to=") else ["--arg", "to=ann"]
    result = cli("enqueue", "cli_shop:app", "mail", "--arg", pair, *more)
    assert result.exit_code == 2
    assert place in result.stderr
    assert result.stderr.count("\n") == 1
    assert queue.stats().enqueued == 0


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        ("copies=NaN", "given was --arg copies=NaN (which is no JSON, so it is a text)"),
        ("urgent=yes", "given was --arg urgent=yes (which is no JSON, so it is a text)"),
        ("when=yesterday", "given was --arg when=yesterday\n"),
        ("price=NaN", "given was --arg price=NaN\n"),
        ("copies=\x1b[2J", "given was --arg copies=\\x1b[2J"),
    ],
)
def test_what_was_typed_for_an_argument_is_told_in_its_refusal(cli: Cli, queue: Queue, pair: str, says: str) -> None:
    result = cli("enqueue", "cli_shop:app", "mail", "--arg", "to=ann", "--arg", pair)
    assert result.exit_code == 2
    assert says in result.stderr
    assert "to=ann" not in result.stderr


@pytest.mark.parametrize("options", [["--arg", "price=NaN"], ["--arg", "copies=x"], ["--priority", "99999999999"]])
def test_a_refusal_names_the_task_and_no_id_that_nobody_has_seen(cli: Cli, queue: Queue, options: list[str]) -> None:
    result = cli("enqueue", "cli_shop:app", "mail", "--arg", "to=ann", *options)
    assert result.exit_code == 2
    assert result.stderr.startswith("headrace: task 'cli_shop:mail': ")
    assert result.stderr.count("cli_shop:mail") == 1
    assert "job '" not in result.stderr


def test_a_refusal_names_the_id_that_was_given(cli: Cli, queue: Queue) -> None:
    result = cli("enqueue", "cli_shop:app", "mail", "--arg", "to=ann", "--id", "a1", "--priority", "99999999999")
    assert result.exit_code == 2
    assert result.stderr.startswith("headrace: job 'a1': priority")


def test_a_job_that_would_end_with_the_command_is_refused(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_URL", "memory://")
    for command in (["enqueue", "cli_shop:app", "mail", "--arg", "to=ann"], ["stats"]):
        result = cli(*command)
        assert (result.exit_code, result.stdout) == (3, "")
        assert "memory:// lives within one process" in result.stderr


def test_a_missing_argument_is_named(cli: Cli, queue: Queue) -> None:
    result = cli("enqueue", "cli_shop:app", "mail")
    assert result.exit_code == 2
    assert "`to`" in result.stderr


@pytest.mark.parametrize("text", ['{"to": "ann", "price": NaN}', "{", "[1]", '"ann"', '{"to": 5}', ""])
def test_json_that_is_not_strict_or_does_not_fit_is_refused(cli: Cli, queue: Queue, text: str) -> None:
    result = cli("enqueue", "cli_shop:app", "mail", "--json", text)
    assert result.exit_code == 2
    assert queue.stats().enqueued == 0


def test_arguments_may_come_from_stdin(cli: Cli, queue: Queue) -> None:
    job = enqueued(cli, queue, "mail", "--json", "-", input='{"to": "ann", "copies": 2}')
    assert arguments(job) == {"to": "ann", "copies": 2}


def test_options_reach_the_job(cli: Cli, queue: Queue) -> None:
    job = enqueued(cli, queue, "mail", "--arg", "to=ann", "--delay", "3600", "--priority", "-7")
    assert (job.state, job.priority) == (State.DELAYED, -7)
    job = enqueued(cli, queue, "mail", "--arg", "to=ann", "--run-at", "2999-03-01T08:30:00+01:00")
    assert job.run_at == datetime(2999, 3, 1, 7, 30, tzinfo=UTC)


def test_the_end_of_a_tasks_name_is_enough_where_it_is_the_only_one(cli: Cli, queue: Queue) -> None:
    result = cli("--json", "enqueue", "cli_shop:app", "daily")
    assert json.loads(result.stdout)["task"] == "reports.daily"


def test_another_queue_than_the_tasks_own_may_be_named(cli: Cli, queue: Queue) -> None:
    result = cli("--json", "enqueue", "cli_shop:app", "daily", "--queue", "default", "--id", "d1")
    assert json.loads(result.stdout)["queue"] == "default"
    assert queue.find("d1") is not None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--delay", "nan"], "nan"),
        (["--delay", "-1"], "-1"),
        (["--delay", "inf"], "inf"),
        (["--run-at", "2026-03-01T08:30:00"], "no offset"),
        (["--run-at", "soon"], "soon"),
        (["--priority", "high"], "high"),
        (["--delay", "1", "--run-at", "2026-03-01T08:30:00Z"], "not both"),
        (["--json", "{}"], "not both"),
        (["--arg", "to=bob"], "twice"),
        (["--arg", "to"], "NAME=VALUE"),
        (["--priority", "99999999999"], "priority"),
        (["--id", ""], "id"),
    ],
)
def test_a_bad_option_is_a_usage_error(cli: Cli, queue: Queue, options: list[str], says: str) -> None:
    result = cli("enqueue", "cli_shop:app", "mail", "--arg", "to=ann", *options)
    assert result.exit_code == 2, result.stderr
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert queue.stats().enqueued == 0


def test_an_unknown_task_is_answered_with_the_like(cli: Cli, queue: Queue) -> None:
    result = cli("enqueue", "cli_shop:app", "cli_shop:male", "--arg", "to=ann")
    assert result.exit_code == 1
    assert "cli_shop:mail" in result.stderr
    result = cli("enqueue", "cli_shop:empty", "mail")
    assert result.exit_code == 1
    assert "no tasks" in result.stderr


def test_an_id_in_use_is_not_so(cli: Cli, queue: Queue) -> None:
    enqueued(cli, queue, "mail", "--arg", "to=ann", "--id", "a1")
    result = cli("enqueue", "cli_shop:app", "mail", "--arg", "to=ann", "--id", "a1")
    assert result.exit_code == 1
    assert "'a1'" in result.stderr


def test_no_argument_is_quoted_by_a_refusal(cli: Cli, queue: Queue) -> None:
    result = cli("enqueue", "cli_shop:app", "fails", "--json", '{"password": ["hunter2"]}')
    assert result.exit_code == 2
    assert "hunter2" not in result.output


def test_the_end_of_two_names_is_not_enough(cli: Cli, queue: Queue) -> None:
    result = cli("enqueue", "cli_shop:app", "weekly")
    assert result.exit_code == 1
    assert "sales.weekly, stock.weekly" in result.stderr
