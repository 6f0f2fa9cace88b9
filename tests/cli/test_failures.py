"""Every way to fail: one line on stderr, nothing on stdout, its own exit code, no traceback, no secret."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_program import COMMAND, LIMIT
from click.testing import Result

import headrace
from headrace import Job, Unsupported
from headrace.cli import root
from headrace.queue import Queue

Cli = Callable[..., Result]


def fails(result: Result, code: int, *says: str) -> None:
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("headrace: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    for text in says:
        assert text in result.stderr


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["nonsense"], "nonsense"),
        (["stats", "--nonsense"], "--nonsense"),
        (["worker"], "MODULE:APP"),
        (["worker", "cli_shop:app", "--workers", "0"], "--workers"),
        (["worker", "cli_shop:app", "--drain", "nan"], "nan"),
        (["cancel"], "ID"),
        (["dead", "list", "--limit", "x"], "--limit"),
        (["completion", "tcsh"], "tcsh"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_2(cli: Cli, args: list[str], says: str) -> None:
    fails(cli(*args), 2, says, ". See: headrace", "--help")


BROKEN = {
    "syntax": "def (:\n",
    "wants_missing": "import no_such_module_anywhere\n",
    "raises": "1 / 0\n",
    "exits": "import sys\nsys.exit(0)\n",
    "bad_task": "from headrace.app import App\napp = App()\n@app.task(timeout=-1)\ndef f() -> None: ...\n",
    "generator": "from headrace.app import App\napp = App()\n@app.task\ndef f():\n    yield\n",
}


@pytest.mark.parametrize("command", [["worker"], ["check"], ["enqueue"]])
@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("broken_syntax:app", "broken_syntax.py:1"),
        ("broken_wants_missing:app", "no_such_module_anywhere"),
        ("broken_raises:app", "ZeroDivisionError"),
        ("broken_exits:app", "sys.exit"),
        ("broken_bad_task:app", "timeout"),
        ("broken_generator:app", "generator"),
        ("no_such_module:app", "no_such_module"),
        ("cli_shop:nothing", "cli_shop:app"),
        ("cli_shop:number", "int"),
        ("cli_shop", "module:name"),
        ("cli_shop.py:app", "cli_shop:app"),
    ],
)
def test_an_app_that_cannot_be_loaded_is_3(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], path: str, says: str
) -> None:
    for name, text in BROKEN.items():
        (tmp_path / f"broken_{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    fails(cli(*command, path, *(["task"] if command == ["enqueue"] else [])), 3, says)


def test_a_worker_without_tasks_is_3(cli: Cli, url: str) -> None:
    fails(cli("worker", "cli_shop:empty"), 3, "cli_shop:empty", "no tasks")
    assert not Path(url.removeprefix("sqlite:///")).exists()


@pytest.mark.parametrize(
    ("misspelt", "says"),
    [
        ("sqllite:///jobs.db", "sqllite"),
        ("sqlite:/jobs.db", "://"),
        ("sqlite://jobs.db", "sqlite:///jobs.db"),
        ("sqlite:///", "no file"),
        ("jobs.db", "://"),
        ("memory://", "one process"),
        ("memory://[", "memory"),
        ("sqlite:///{}?leese=60", "leese"),
        ("sqlite:///{}?lease=-1", "lease"),
        ("sqlite:///{}?lease=nan", "lease"),
    ],
)
def test_a_misspelt_url_is_3(cli: Cli, queue: Queue, tmp_path: Path, misspelt: str, says: str) -> None:
    fails(cli("stats", "--queue", "default", "--url", misspelt.format(tmp_path / "jobs.db")), 3, says)


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("/no/such/folder/jobs.db", "/no/such/folder"),
        ("/proc/jobs.db", "/proc/jobs.db"),
        ("/", "/"),
        ("/proc/version", "/proc/version"),
    ],
)
@pytest.mark.parametrize("command", [["check", "--create"], ["worker", "cli_shop:app", "--burst"]])
def test_a_place_where_no_store_can_be_is_4(cli: Cli, command: list[str], place: str, says: str) -> None:
    # Files of the kernel are beyond the reach of root too, for whom a read-only folder would prove nothing.
    result = cli(*command, "--url", f"sqlite:///{place}")
    assert result.exit_code == 4, result.output
    assert result.stdout == ""
    assert says in result.stderr
    assert "Traceback" not in result.stderr


def test_a_broken_file_is_4(cli: Cli, tmp_path: Path, url: str) -> None:
    (tmp_path / "jobs.db").write_bytes(b"This is no database. " * 500)
    for command in (["stats"], ["stats", "--queue", "default"], ["dead", "list"], ["check"]):
        fails(cli(*command), 4, str(tmp_path / "jobs.db"), "not an SQLite database")


def test_an_empty_file_holds_no_queue_yet(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "jobs.db").touch()
    for command in (["stats", "--json"], ["stats", "--queue", "default"], ["check"]):
        fails(cli(*command), 1, "holds no queues", str(tmp_path / "jobs.db"))
    assert (tmp_path / "jobs.db").read_bytes() == b""
    assert cli("check", "--create").exit_code == 0


def test_a_full_queue_is_1(cli: Cli, url: str, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    queue.enqueue(Job())
    monkeypatch.setenv("HEADRACE_URL", f"{url}?capacity=1")
    fails(cli("enqueue", "cli_shop:app", "daily", "--queue", "default"), 1, "full")


def test_the_url_of_an_app_is_not_overruled(cli: Cli, url: str) -> None:
    fails(cli("worker", "cli_shop:elsewhere", "--url", url), 3, "names its own URL")


def test_an_environment_that_does_not_count_is_told_once(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADRACE_URL", "postgresql://ann:hunter2@db/shop")
    result = cli("check", "cli_shop:elsewhere", "--create")
    assert result.exit_code == 0
    [told] = [each for each in result.stderr.splitlines() if "HEADRACE_URL" in each]
    for text in ("cli_shop:elsewhere names its own URL, sqlite:///elsewhere.db", "postgresql://ann:***@db/shop"):
        assert text in told
    assert "hunter2" not in result.output
    monkeypatch.setenv("HEADRACE_URL", "sqlite:///elsewhere.db")
    assert "HEADRACE_URL" not in cli("check", "cli_shop:elsewhere").stderr


PASSWORD = "S3cr3t/p@ss word"


@pytest.mark.parametrize(
    "secretive",
    [
        f"postgresql://ann:{PASSWORD}@db.example/shop",
        "postgresql://ann:S3cr3t%2Fp%40ss%20word@127.0.0.1:1/shop?patience=0.01",
        f"sqlite://ann:{PASSWORD}@db.example/shop",
        f"host=db.example user=ann password='{PASSWORD}'",
        f"sqlite:///jobs.db?password={PASSWORD}",
        f"sqlite:///no/such/folder/jobs.db?password={PASSWORD}",
    ],
)
@pytest.mark.parametrize("by", ["option", "environment"])
def test_no_command_shows_a_password(cli: Cli, monkeypatch: pytest.MonkeyPatch, secretive: str, by: str) -> None:
    if by == "environment":
        monkeypatch.setenv("HEADRACE_URL", secretive)
    given = ["--url", secretive] if by == "option" else []
    for command in (["check"], ["stats"], ["dead", "list"], ["worker", "cli_shop:app", "--burst"], ["pause"]):
        for debug in ([], ["--debug"]):
            result = cli(*command, *given, *debug)
            assert result.exit_code != 0
            for secret in (PASSWORD, "S3cr3t", "p@ss", "p%40ss"):
                assert secret not in result.output


def test_debug_shows_the_traceback_above_the_line(cli: Cli) -> None:
    result = cli("worker", "cli_shop:nothing", "--debug")
    assert result.exit_code == 3
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("headrace: ")


def test_a_defect_of_our_own_is_70_and_still_one_line(cli: Cli, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: object, **__: object) -> None:
        raise RuntimeError("no\nway")

    monkeypatch.setattr(root.commands["pause"], "callback", explode)
    fails(cli("pause"), 70, "RuntimeError: no way", "--debug")


def test_what_a_backend_cannot_do_is_1(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise Unsupported("this backend cannot pause")

    monkeypatch.setattr(root.commands["pause"], "callback", refuse)
    fails(cli("pause"), 1, "cannot pause")


def test_help_lists_the_exit_codes_and_names_every_command(cli: Cli) -> None:
    shown = cli("--help").stdout
    for text in (
        "done, or yes",
        "70",
        "128+N",
        "worker",
        "enqueue",
        "stats",
        "dead",
        "pause",
        "resume",
        "cancel",
        "check",
        "completion",
    ):
        assert text in shown
    for command in root.commands:
        assert cli(command, "--help").exit_code == 0


def test_without_a_command_the_help_is_shown_and_it_is_2(cli: Cli) -> None:
    result = cli()
    assert result.exit_code == 2
    assert "Usage:" in result.stderr


def test_help_loads_neither_rich_nor_the_store() -> None:
    code = (
        "import sys; from headrace.cli import root; root.main(['--help'], standalone_mode=False)\n"
        "print([each for each in ('rich', 'headrace.app', 'headrace.pool', 'headrace.sqlite') if each in sys.modules])"
    )
    shown = subprocess.run([COMMAND[0], "-c", code], capture_output=True, text=True, check=True, timeout=LIMIT).stdout
    assert shown.splitlines()[-1] == "[]"


def test_the_version_is_told(cli: Cli) -> None:
    assert cli("--version").stdout.startswith("headrace 0.")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_printed(cli: Cli, shell: str) -> None:
    result = cli("completion", shell)
    assert result.exit_code == 0
    assert "_HEADRACE_COMPLETE" in result.stdout


def test_the_shell_is_given_completions(env: dict[str, str]) -> None:
    words = {**env, "_HEADRACE_COMPLETE": "bash_complete", "COMP_WORDS": "headrace st", "COMP_CWORD": "1"}
    done = subprocess.run(
        [COMMAND[0], "-c", "from headrace.cli import main; main()"],
        env=words,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.stdout == "plain,stats\n"


def test_check_writes_reads_and_leaves_nothing(cli: Cli, url: str, tmp_path: Path) -> None:
    first = json.loads(cli("check", "cli_shop:app", "--json", "--create").stdout)
    assert (first["usable"], first["new"], first["file"]) == (True, True, str(tmp_path / "jobs.db"))
    assert {"name": "reports.daily", "queue": "reports", "kind": "thread"} in first["tasks"]
    assert json.loads(cli("check", "--json").stdout)["new"] is False
    with headrace.connect(url) as queue:
        stats = queue.stats()
    assert (stats.size, stats.dead, stats.cancelled, stats.unaccounted) == (0, 0, 2, 0)
    assert "task: cli_shop:mail" in cli("check", "cli_shop:app").stdout


def test_check_makes_no_file_unless_told_to(cli: Cli, tmp_path: Path) -> None:
    fails(cli("check"), 4, "no such file", "--create", str(tmp_path / "jobs.db"))
    fails(cli("check", "cli_shop:app"), 4, "no such file")
    assert list(tmp_path.iterdir()) == []


def test_check_makes_no_queue_where_there_is_one(cli: Cli, url: str) -> None:
    with headrace.connect(url, queue="reports") as queue:
        queue.stats()
        for command in (["check"], ["check", "cli_shop:app"], ["check", "--create"]):
            assert cli(*command).exit_code == 0
        assert queue.stats().cancelled == 3
    assert [each["queue"] for each in json.loads(cli("stats", "--json").stdout)] == ["reports"]


def test_check_warns_of_queues_that_end_with_their_process(cli: Cli) -> None:
    result = cli("check", "--url", "memory://")
    assert result.exit_code == 0
    assert "within this process alone: default" in result.stderr


@pytest.mark.parametrize(
    ("version", "noted"),
    [
        ((3, 6, 23), False),
        ((3, 7, 0), True),
        ((3, 40, 1), True),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((4, 0, 0), False),
    ],
)
def test_check_notes_an_sqlite_with_the_wal_reset_defect(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int], noted: bool
) -> None:
    monkeypatch.setattr("sqlite3.sqlite_version_info", version)
    result = cli("check", "--json", "--create")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["wal_reset_defect"] is noted
    assert ("WAL-reset" in result.stderr) is noted
    assert ("operating system" in result.stderr) is noted


def test_check_notes_an_app_without_tasks(cli: Cli) -> None:
    result = cli("check", "cli_shop:empty", "--create")
    assert result.exit_code == 0
    assert "no tasks" in result.stderr


def test_without_a_url_the_store_is_a_file_beside_you(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEADRACE_URL")
    monkeypatch.chdir(tmp_path)
    assert json.loads(cli("check", "--json", "--create").stdout)["file"] == str(tmp_path / "headrace.db")
