"""Processes that die: children of a pool, and the pool itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pool_kit import KINDS, Witness, job, memory, ours, read, running, started

import headrace
from headrace.job import Job
from headrace.pool import Pool
from headrace.pool.runners.processes import Child
from headrace.testing.clock import wait_until

HERE = Path(__file__).parent


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@contextmanager
def worker(url: str, kind: str, ledger: Path, workers: int = 2, lease: float = 30) -> Iterator[subprocess.Popen[str]]:
    """The worker program in a process group of its own."""
    source = Path(headrace.__file__).parents[1]
    process = subprocess.Popen(
        [sys.executable, str(HERE / "pool_worker.py"), url, kind, str(ledger), str(workers), str(lease)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{HERE}"},
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def starts(ledger: Path) -> Counter[str]:
    return Counter(line.split()[1] for line in read(ledger) if line.startswith("start "))


def children_of(pid: int) -> list[int]:
    """Its child processes that run our code, by /proc."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if int(fields[1]) == pid and b"spawn_main" in command:
                found.append(int(entry.name))
    return found


def alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("act", "error"),
    [
        ("kill", "the process that ran it was killed by SIGKILL"),
        ("exit", "the process that ran it ended with exit code 0 in the middle of the job"),
    ],
)
def test_a_child_that_dies_fails_its_own_job_only(act: str, error: str, ledger: Path) -> None:
    queue = memory(max_attempts=3)
    queue.enqueue_many([job("sleep:0.3", ledger, id=f"before{number}") for number in range(3)])
    queue.enqueue(job(act, ledger, id="bad"))
    queue.enqueue_many([job("return", ledger) for _ in range(20)])
    with running(queue, "process", retry=lambda attempt: 0.01) as run:
        run.witness.until_finished(26)
    (dead,) = queue.dead()
    assert (dead.id, dead.attempt, dead.last_error) == ("bad", 3, error)
    assert starts(ledger)["bad"] == 3
    assert queue.stats().acked == 23


def test_a_child_that_dies_while_idle_is_replaced(ledger: Path) -> None:
    queue = memory()
    with running(queue, "process", workers=1) as run:
        for number in range(3):
            queue.enqueue(job("return", ledger))
            run.witness.until_finished(number + 1)
            wait_until(lambda: len(children_of(os.getpid())) == 1)
            (pid,) = children_of(os.getpid())
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda pid=pid: not alive(pid))  # type: ignore[misc]  # bound now
    assert run.witness.verdicts() == ["acked"] * 3


def test_children_are_reused_and_gone_at_the_end(ledger: Path) -> None:
    queue = memory()
    queue.enqueue_many([job("return", ledger) for _ in range(30)])
    with running(queue, "process", workers=2) as run:
        run.witness.until_finished(30)
        children = children_of(os.getpid())
        assert 1 <= len(children) <= 2
    assert not any(alive(pid) for pid in children)
    wait_until(lambda: ours() == [])


def unpicklable(*_: object) -> None: ...


def test_arguments_that_cannot_travel_fail_their_attempt_and_harm_no_child(ledger: Path) -> None:
    from headrace.pool import Call

    class Resolver:
        def resolve(self, given: Job) -> Call:
            argument: object = (lambda: None) if given.id == "bad" else 1
            return Call(function=unpicklable, args=(argument,), kind="process", name="t")

    queue, witness = memory(max_attempts=1), Witness()
    queue.enqueue_many([Job(id="bad"), Job(id="good")])
    with started(Pool(queue, Resolver(), workers=1, listener=witness), witness):
        witness.until_finished(2)
    assert sorted(witness.verdicts()) == ["acked", "nacked"]
    assert "pickle" in str(queue.dead()[0].last_error).lower()


def test_a_child_that_cannot_start_fails_the_attempt(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(pipe: object) -> None: ...

    monkeypatch.setattr("headrace.pool.runners.processes.main", print)
    queue = memory(max_attempts=1)
    queue.enqueue(job("return", ledger))
    with running(queue, "process", workers=1) as run:
        run.witness.until_finished(1)
    assert "a worker process did not start" in str(queue.dead()[0].last_error)


def test_a_child_ignores_ctrl_c_and_its_death_is_no_trouble_to_whoever_calls_it() -> None:
    child = Child()
    os.kill(child.process.pid or 0, signal.SIGINT)  # ignored: the parent decides
    assert child.process.is_alive()
    child.signal(signal.SIGKILL)
    child.process.join(5)
    assert child.process.exitcode == -signal.SIGKILL
    child.signal(signal.SIGKILL)  # nobody is there any more
    child.ask(1)
    child.end()
    child.pipe.close()


def test_children_die_with_their_parent(tmp_path: Path, ledger: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    with headrace.connect(url) as queue:
        queue.enqueue_many([job("sleep:60", ledger) for _ in range(2)])
    with worker(url, "process", ledger) as process:
        wait_until(lambda: sum(starts(ledger).values()) == 2)
        children = children_of(process.pid)
        assert len(children) == 2
        process.kill()
        wait_until(lambda: not any(alive(pid) for pid in children))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_whole_group_lets_running_jobs_finish(
    kind: str, number: signal.Signals, tmp_path: Path, ledger: Path
) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    with headrace.connect(url) as queue:
        queue.enqueue_many([job("sleep:1", ledger) for _ in range(4)])
        with worker(url, kind, ledger) as process:
            wait_until(lambda: sum(starts(ledger).values()) == 2)
            children = children_of(process.pid)
            os.killpg(process.pid, number)
            assert process.wait(10) == 0
            assert process.stderr is not None
            said = process.stderr.read()
        stats = queue.stats()
    assert (stats.ready, stats.inflight, stats.dead, stats.acked, stats.retried) == (2, 0, 0, 2, 0)
    assert "once more to end at once" in said
    assert "Traceback" not in said
    assert not any(alive(pid) for pid in children)


@pytest.mark.parametrize("act", ["stubborn:60", "block:60"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_second_signal_ends_the_program_within_two_seconds(kind: str, act: str, tmp_path: Path, ledger: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    with headrace.connect(url) as queue:
        queue.enqueue(job(act, ledger, id="a"))
        with worker(url, kind, ledger) as process:
            wait_until(lambda: sum(starts(ledger).values()) == 1)
            os.killpg(process.pid, signal.SIGINT)
            assert process.stderr is not None
            said = ""
            while "once more" not in said:
                said = process.stderr.readline()
                assert said, "it ended at the first signal"
            begun = time.monotonic()
            os.killpg(process.pid, signal.SIGINT)
            assert process.wait(10) != 0
            assert time.monotonic() - begun < 2.5
        stats = queue.stats()
    assert stats.dead == 0
    # Given back; or, where a handler blocked the loop itself, left to its lease.
    assert (stats.ready, stats.inflight) == ((0, 1) if (kind, act) == ("async", "block:60") else (1, 0))


@pytest.mark.parametrize("act", ["kill", "exit"])
def test_a_job_that_kills_its_worker_is_dead_after_its_attempts_and_harms_no_other(
    act: str, tmp_path: Path, ledger: Path
) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    with headrace.connect(url, lease=0.5, max_attempts=3) as queue:
        queue.enqueue(job(act, ledger, id="bad"))
        queue.enqueue(job(act, ledger, id="once", max_attempts=1))
        queue.enqueue_many([job("return", ledger, id=f"good{number}") for number in range(50)])
        for _ in range(30):
            with worker(url, "thread", ledger, workers=1, lease=0.5) as process:
                wait_until(lambda p=process: p.poll() is not None or queue.stats().size == 0)  # type: ignore[misc]  # bound now
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                    process.wait(10)
                    break
        stats = queue.stats()
        dead = {letter.id: letter for letter in queue.dead()}
    begun = starts(ledger)
    assert begun["once"] == 1
    assert begun["bad"] == 3
    assert dead["bad"].attempt == 3
    assert dead["once"].attempt == 1
    assert all("lease" in str(letter.last_error) for letter in dead.values())
    assert (stats.acked, stats.dead, stats.size) == (50, 2, 0)
