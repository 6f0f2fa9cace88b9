"""For the scenarios: worker processes that can be signalled and killed, the ledger, and what must hold in the end."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
import scenario_app
from scenario_app import Line

import headrace
from headrace.connect import split_url
from headrace.job import Stats
from headrace.tasks.task import Task
from headrace.testing.clock import wait_until

LIMIT = 30.0
"""Seconds within which anything that is waited for must have happened, on a slow machine too."""
KINDS = ["in loop", "in thread", "in process"]
EVERYWHERE = pytest.mark.parametrize("stage", ["sqlite", "postgres"], indirect=True)
"""On both of the stores that processes share."""
EACH_KIND = pytest.mark.parametrize(
    ("kind", "stage"),
    [*((kind, "sqlite") for kind in KINDS), ("in loop", "postgres"), ("in process", "postgres")],
    indirect=["stage"],
)
"""Handlers of all kinds; what is the handlers' own has been seen on one store."""
HERE = Path(__file__).parent


class Worker:
    """``headrace worker`` in a process group of its own, at a terminal of its own where asked for."""

    def __init__(self, args: Sequence[str], env: dict[str, str], terminal: bool) -> None:
        command = [sys.executable, "-m", "headrace", "worker", "scenario_app:app", *args]
        self._output = b""
        self._master: int | None = None
        if terminal:
            self._master, slave = os.openpty()
            # A new session with this as its terminal: only then does the kernel turn ^C into SIGINT.
            login = "import os, sys; os.login_tty(int(sys.argv[1])); os.execvp(sys.argv[2], sys.argv[2:])"
            command = [sys.executable, "-c", login, str(slave), *command]
            self.process = subprocess.Popen(command, env=env, pass_fds=[slave])
            os.close(slave)
            self._source = self._master
        else:
            self.process = subprocess.Popen(
                command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
            )
            assert self.process.stdout is not None
            self._source = self.process.stdout.fileno()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                chunk = os.read(self._source, 65536)
            except OSError:  # a terminal whose last user is gone
                return
            if not chunk:
                return
            self._output += chunk

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> str:
        return self._output.decode("utf-8", "replace")

    def says(self, text: str, times: int = 1) -> None:
        try:
            wait_until(lambda: self.output.count(text) >= times, LIMIT)
        except TimeoutError:
            raise AssertionError(f"never said {text!r}, but: {self.output}") from None

    def press_ctrl_c(self) -> None:
        assert self._master is not None
        os.write(self._master, b"\x03")

    def signal(self, number: int) -> None:
        """To everyone in its process group, as a terminal does."""
        os.killpg(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, to the worker alone, as the OOM killer does."""
        self.process.kill()
        self.process.wait(LIMIT)

    def ends(self) -> int:
        """Its exit code."""
        code = self.process.wait(LIMIT)
        self._reader.join(LIMIT)
        return code

    def clear(self) -> None:
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(LIMIT)
        self._reader.join(LIMIT)
        if self._master is not None:
            os.close(self._master)
        elif self.process.stdout is not None:
            self.process.stdout.close()


class Stage:
    """One store, its workers and their ledger."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        self.env = env
        self.url = env["HEADRACE_URL"]
        self.queue = headrace.connect(self.url)
        self.workers: list[Worker] = []

    def enqueue(self, kind: str, act: str, *ids: str, **options: Any) -> None:
        """One job for each id: ``act`` for the handler of that kind."""
        task: Task[..., object] = scenario_app.app.tasks[f"scenario_app:{kind.replace(' ', '_')}"]
        self.queue.enqueue_many([task.options(id=id, **options).job(act) for id in ids])

    def worker(self, *args: str, workers: int = 4, lease: float = 60.0, terminal: bool = False) -> Worker:
        given = ["--workers", str(workers), "--lease", str(lease), *args]
        self.workers.append(Worker(given, self.env, terminal))
        return self.workers[-1]

    def balanced(self, most: int, *args: str, lease: float = 60.0) -> Worker:
        """One whose pool has 1 to ``most`` workers, a new one for nearly every job that waits."""
        given = ["--min", "1", "--max", str(most), "--target-age", "0.01", "--lease", str(lease), *args]
        self.workers.append(Worker(given, self.env, terminal=False))
        return self.workers[-1]

    def let_go(self) -> None:
        """End every ``hold``."""
        (self.folder / "go").touch()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else can write to the store meanwhile."""
        if self.url.startswith("postgresql:"):
            with self.database() as connection, connection.transaction():
                connection.execute("LOCK TABLE headrace.jobs, headrace.leases, headrace.deltas")
                yield
        else:
            with closing(sqlite3.connect(self.folder / "jobs.db", timeout=LIMIT, isolation_level=None)) as file:
                file.execute("BEGIN EXCLUSIVE")
                yield
                file.execute("COMMIT")

    def database(self) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection to PostgreSQL beside those of the queue."""
        return psycopg.connect(split_url(self.url)[1], autocommit=True)

    # What happened

    @property
    def ledger(self) -> list[Line]:
        path = self.folder / "ledger"
        text = path.read_bytes() if path.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]  # the last line may be on its way
        return msgspec.json.Decoder(Line).decode_lines(whole)

    def lines(self, event: str, id: str | None = None) -> list[Line]:
        return [line for line in self.ledger if line.event == event and id in (None, line.id)]

    def started(self, count: int, id: str | None = None) -> list[Line]:
        """Wait for so many starts."""
        return self.wait_for("start", count, id)

    def wait_for(self, event: str, count: int, id: str | None = None) -> list[Line]:
        self.until(lambda: len(self.lines(event, id)) >= count, f"{count} × {event}")
        return self.lines(event, id)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        try:
            wait_until(condition, LIMIT)
        except TimeoutError:
            said = "\n".join(f"--- worker {worker.pid}\n{worker.output[-3000:]}" for worker in self.workers)
            ledger = "\n".join(str(line) for line in self.ledger[-20:])
            raise AssertionError(f"never came true: {what}\n{self.queue.stats()}\n{ledger}\n{said}") from None

    def until_done(self, acked: int) -> Stats:
        """Wait until so many are acked and nothing is unfinished."""

        def done() -> bool:
            stats = self.queue.stats()
            return stats.acked >= acked and stats.ready + stats.delayed + stats.inflight == 0

        self.until(done, f"{acked} acked, nothing unfinished")
        return self.queue.stats()

    def command(self, *args: str) -> str:
        """Another command of the program, to its end; what it printed."""
        ended = subprocess.run(
            [sys.executable, "-m", "headrace", *args], env=self.env, capture_output=True, text=True, timeout=LIMIT
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    # In the end

    def clear(self) -> None:
        for worker in self.workers:
            worker.clear()

    def check(self) -> None:
        """What must be true after every scenario, once its workers are gone."""
        stats = self.queue.stats()
        assert stats.unaccounted == 0, stats
        lives = [(line.id, line.fence) for line in self.lines("start")]
        assert len(set(lives)) == len(lives), "a handler was started twice under one lease"
        if self.url.startswith("postgresql:"):
            with self.database() as raw:
                found = raw.execute("SELECT count(*), count(*) FILTER (WHERE until > 0) FROM headrace.jobs").fetchone()
                assert found == (stats.ready + stats.delayed + stats.inflight, stats.inflight), stats
        else:
            with closing(sqlite3.connect(self.folder / "jobs.db")) as file:
                assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        pids = {line.pid for line in self.ledger} | {worker.pid for worker in self.workers}
        wait_until(lambda: not any(map(alive, pids)), LIMIT)
        self.queue.close()


def alive(pid: int) -> bool:
    try:
        # One that ended, and that nobody has asked about yet, still has its number.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
