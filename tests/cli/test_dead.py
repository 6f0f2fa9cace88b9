"""Dead letters from the command line: pages, whole errors, hidden payloads, replay and purge."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from cli_program import Program
from click.testing import Result

import headrace
import headrace.cli.dead
from headrace import Job, State
from headrace.queue import Queue

Cli = Callable[..., Result]
Start = Callable[..., Program]


def bury(queue: Queue, *ids: str, payload: bytes = b'{"password": "hunter2"}', error: str = "no way") -> None:
    for id in ids:
        queue.enqueue(Job(payload=payload, id=id))
        job = queue.dequeue(0)
        assert job is not None
        queue.bury(job, error)


def listed(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    return [job["id"] for job in json.loads(result.stdout)]


def test_pages_follow_each_other_oldest_first(cli: Cli, queue: Queue) -> None:
    bury(queue, "a", "b", "c", "d", "e")
    first = cli("dead", "list", "--json", "--limit", "2")
    assert listed(first) == ["a", "b"]
    assert first.stderr == "more: --after b\n"
    assert listed(cli("dead", "list", "--json", "--limit", "2", "--after", "b")) == ["c", "d"]
    last = cli("dead", "list", "--json", "--limit", "2", "--after", "d")
    assert (listed(last), last.stderr) == (["e"], "")


def test_the_task_and_the_time_of_death_are_told(cli: Cli, queue: Queue) -> None:
    before = datetime.now(UTC)
    bury(queue, "a", payload=b'{"task": "shop:mail", "v": 1, "args": {}}')
    [job] = json.loads(cli("dead", "list", "--json").stdout)
    assert job["task"] == "shop:mail"
    died = datetime.fromisoformat(job["died_at"])
    assert before <= died <= datetime.now(UTC)
    shown = cli("dead", "show", "a").stdout
    assert "task      shop:mail\n" in shown
    assert f"died      {died:%Y-%m-%d %H:%M:%S}Z\n" in shown
    head, _, row = cli("dead", "list").stdout.splitlines()
    assert "dead for" in head
    assert row.split()[:2] == ["a", "1/5"]
    assert " ms " in row or " s " in row
    assert row.split()[-3:] == ["shop:mail", "no", "way"]


def test_the_error_has_room_on_a_small_screen(start: Start, env: dict[str, str], queue: Queue) -> None:
    payload = b'{"task": "shop.orders.mail:send_the_invoice", "v": 1, "args": {}}'
    bury(queue, "0123456789abcdef-0123456789abcdef-01", payload=payload, error="refused by mail.example.com:25")
    env["COLUMNS"] = "80"
    listing = start("dead", "list", terminal=True)
    assert listing.ends() == 0
    assert "shop.orders.mail:send" in listing.output
    assert "refused by mail.examp" in listing.output


@pytest.mark.parametrize(
    "payload", [b"", b"\xff", b"[1]", b'{"task": 5, "v": 1, "args": {}}', b'{"task": "shop:mail"}']
)
def test_a_payload_that_is_no_call_of_a_task_has_none(cli: Cli, queue: Queue, payload: bytes) -> None:
    bury(queue, "a", payload=payload)
    assert json.loads(cli("dead", "show", "a", "--json").stdout)["task"] is None
    assert "task      -\n" in cli("dead", "show", "a").stdout
    assert cli("dead", "list").stdout.splitlines()[-1].split()[-3:] == ["-", "no", "way"]


def test_a_page_behind_one_that_is_gone_is_refused(cli: Cli, queue: Queue) -> None:
    bury(queue, "a")
    assert cli("dead", "list", "--after", "zz").exit_code == 1


def test_an_empty_list_says_so(cli: Cli, queue: Queue) -> None:
    queue.stats()
    assert "no dead letters" in cli("dead", "list").stdout
    assert listed(cli("dead", "list", "--json")) == []


def test_an_empty_list_names_the_other_queues_unless_a_queue_was_named(cli: Cli, queue: Queue, url: str) -> None:
    queue.stats()
    for name in ("mail", "bills"):
        with headrace.connect(url, queue=name) as other:
            other.stats()
    assert cli("dead", "list").stdout == "queue 'default': no dead letters; --queue for another: bills, mail\n"
    assert cli("dead", "list", "--queue", "mail").stdout == "queue 'mail': no dead letters\n"


@pytest.mark.parametrize("args", [["list"], ["list", "--json"], ["show", "a"], ["show", "a", "--json"]])
def test_payloads_are_hidden_unless_asked_for(cli: Cli, queue: Queue, args: list[str]) -> None:
    bury(queue, "a")
    assert "hunter2" not in cli("dead", *args).output
    assert "hunter2" in cli("dead", *args, "--payload").output


def test_show_pretty_prints_a_json_payload_and_the_whole_error(cli: Cli, queue: Queue) -> None:
    error = "first line\nsecond line " + "x" * 500
    bury(queue, "a", error=error)
    shown = cli("dead", "show", "a", "--payload").stdout
    assert '  {\n    "password": "hunter2"\n  }' in shown
    assert "  second line " + "x" * 500 in shown


@pytest.mark.parametrize("payload", [b"\x00\xff", b'{"n": NaN}', b"", b'"\\ud800"', b"[" * 100_000])
def test_any_payload_comes_out_as_strict_json(cli: Cli, queue: Queue, payload: bytes) -> None:
    bury(queue, "a", payload=payload)
    result = cli("dead", "show", "a", "--json", "--payload")
    assert result.exit_code == 0
    shown = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert ("payload" in shown) != ("payload_base64" in shown)
    assert cli("dead", "show", "a", "--payload").exit_code == 0
    assert cli("dead", "list", "--payload").exit_code == 0


def test_control_sequences_of_a_job_do_not_reach_the_terminal(cli: Cli, queue: Queue) -> None:
    owned = b'{"task": "\\u001b[2J", "v": 1, "args": {}}'
    bury(queue, "a", error="\x1b]0;owned\x07\x9b31m\r[red]x[/red]", payload=owned)
    for args in (["list", "--payload"], ["show", "a", "--payload"]):
        output = cli("dead", *args).stdout
        assert not {"\x1b", "\x07", "\x9b", "\r"} & set(output)
        assert "[red]x[/red]" in output


def test_a_connection_string_in_an_error_is_masked(cli: Cli, queue: Queue) -> None:
    bury(queue, "a", error="cannot reach postgresql://ann:hunter2@db/shop")
    for args in (["list"], ["show", "a"], ["list", "--json"]):
        output = cli("dead", *args).stdout
        assert "hunter2" not in output
        assert "ann:***@db" in output


def test_show_finds_a_dead_letter_whose_id_is_in_use_again(cli: Cli, queue: Queue) -> None:
    bury(queue, "a", "b", error="the first life")
    queue.enqueue(Job(id="b"))
    assert "the first life" in cli("dead", "show", "b").stdout
    queue.enqueue(Job(id="c"))
    result = cli("dead", "show", "c")
    assert (result.exit_code, "is not dead, it is ready" in result.stderr) == (1, True)
    assert cli("dead", "show", "zz").exit_code == 1


def test_replay_of_all_goes_in_batches(cli: Cli, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headrace.cli.dead, "BATCH", 2)
    bury(queue, "a", "b", "c", "d", "e")
    result = cli("dead", "replay", "--all", "--json")
    assert json.loads(result.stdout) == {"queue": "default", "replayed": 5}
    stats = queue.stats()
    assert (stats.ready, stats.dead, stats.unaccounted) == (5, 0, 0)


def test_replay_of_some_takes_the_longest_dead(cli: Cli, queue: Queue) -> None:
    bury(queue, "a", "b", "c")
    assert "2 replayed" in cli("dead", "replay", "--limit", "2").stdout
    assert [job.id for job in queue.dead()] == ["c"]


def test_replay_by_id_names_those_that_stay(cli: Cli, queue: Queue) -> None:
    bury(queue, "a", "b")
    queue.enqueue(Job(id="b"))
    result = cli("dead", "replay", "a", "b", "zz", "a", "--json")
    assert json.loads(result.stdout)["replayed"] == 1
    assert result.exit_code == 1
    assert "'b', 'zz'" in result.stderr
    job = queue.find("a")
    assert job is not None
    assert (job.state, job.attempt) == (State.READY, 0)


def test_a_replay_that_leaves_some_dead_says_so(cli: Cli, queue: Queue) -> None:
    bury(queue, "a")
    queue.enqueue(Job(id="a"))
    result = cli("dead", "replay", "--all")
    assert result.exit_code == 1
    assert "1 stay dead" in result.stderr


@pytest.mark.parametrize("args", [[], ["a", "--all"], ["--all", "--limit", "1"], ["--limit", "0"]])
def test_replay_wants_exactly_one_choice(cli: Cli, queue: Queue, args: list[str]) -> None:
    assert cli("dead", "replay", *args).exit_code == 2


def test_purge_asks_first(cli: Cli, queue: Queue) -> None:
    bury(queue, "a", "b")
    for answer in ("n\n", ""):
        result = cli("dead", "purge", input=answer)
        assert result.exit_code == 1
        assert "2 dead letters" in result.stderr
        assert queue.stats().dead == 2
    assert cli("dead", "purge", input="y\n").exit_code == 0
    stats = queue.stats()
    assert (stats.dead, stats.taken, stats.unaccounted) == (0, 2, 0)


def test_purge_takes_none_by_name_and_says_which_way_there_is(cli: Cli, queue: Queue) -> None:
    bury(queue, "a", "b")
    result = cli("dead", "purge", "b", "--yes")
    assert result.exit_code == 2
    assert "headrace pause, headrace dead replay b, headrace cancel b, headrace resume" in result.stderr
    assert queue.stats().dead == 2
    for command in ("pause", "dead replay b", "cancel b", "resume"):
        assert cli(*command.split()).exit_code == 0
    assert [job.id for job in queue.dead()] == ["a"]
    assert (queue.find("b"), queue.stats().cancelled, queue.stats().unaccounted) == (None, 1, 0)


def test_one_dead_letter_is_no_letters(cli: Cli, queue: Queue) -> None:
    bury(queue, "a")
    assert "1 dead letter of queue 'default'" in cli("dead", "purge", input="n\n").stderr


def test_purge_with_yes_asks_nothing(cli: Cli, queue: Queue) -> None:
    bury(queue, "a", "b", "c")
    result = cli("dead", "purge", "--yes", "--limit", "2", "--json")
    assert json.loads(result.stdout) == {"queue": "default", "purged": 2}
    assert [job.id for job in queue.dead()] == ["c"]
    assert json.loads(cli("dead", "purge", "--yes", "--json").stdout)["purged"] == 1
    assert json.loads(cli("dead", "purge", "--json").stdout)["purged"] == 0
