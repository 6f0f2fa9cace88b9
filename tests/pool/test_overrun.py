"""Handlers that ignore their time limit take no slot with them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from pool_kit import KINDS, Witness, job, memory, note, ours, read, running, started

from headrace.job import Job
from headrace.pool import Pool, PoolFailed
from headrace.testing.clock import wait_until


@pytest.mark.parametrize(
    ("kind", "act"),
    [("async", "stubborn:4"), ("thread", "stubborn:4"), ("process", "stubborn:30")],
)
def test_eight_hung_jobs_on_four_slots_do_not_stop_the_quick_ones(kind: str, act: str, tmp_path: Path) -> None:
    queue, ledger = memory(max_attempts=1), tmp_path / "ledger"
    queue.enqueue_many([job(act, ledger, id=f"hung{number}") for number in range(8)])
    queue.enqueue_many([job("return", ledger) for _ in range(100)])
    limit = 0.3
    with running(queue, kind, timeout=limit) as run:
        begun = time.monotonic()
        run.witness.until_finished(108)
        assert time.monotonic() - begun < 15  # generous: 2 cores start 12 processes
        assert sorted(run.witness.verdicts()) == ["acked"] * 100 + ["nacked"] * 8
        assert [dead.last_error for dead in queue.dead()] == ["timed out after 0.3 s"] * 8
        health = run.pool.health()
        assert health.ok
        assert health.zombies == (0 if kind == "process" else 8)
        if kind != "process":
            wait_until(lambda: run.pool.health().zombies == 0)
        stats = queue.stats()
        assert (stats.acked, stats.dead_total, stats.ack_too_late, stats.unaccounted) == (100, 8, 0, 0)
        run.pool.stop()
        assert not run.join().forced
    wait_until(lambda: ours() == [])


@pytest.mark.parametrize("kind", ["async", "thread"])
def test_too_many_zombies_bring_the_pool_down_with_an_error(kind: str, tmp_path: Path) -> None:
    queue, ledger = memory(max_attempts=1), tmp_path / "ledger"
    queue.enqueue_many([job("stubborn:2", ledger) for _ in range(6)])
    with running(queue, kind, workers=2, timeout=0.05, zombies=3) as run:
        wait_until(lambda: run.ended)
        with pytest.raises(PoolFailed, match="4 handlers did not stop"):
            run.join()
        assert not run.pool.health().ok
    if kind == "thread":
        wait_until(lambda: ours() == [])


def test_a_late_return_of_a_zombie_changes_nothing(tmp_path: Path) -> None:
    queue, ledger = memory(max_attempts=2), tmp_path / "ledger"
    queue.enqueue(job("sleep:0.5", ledger, id="a"))
    with running(queue, "thread", timeout=0.1, retry=lambda attempt: 60.0) as run:
        run.witness.until_finished(1)
        wait_until(lambda: read(ledger) == ["start a 1", "end a 1"])
        wait_until(lambda: run.pool.health().zombies == 0)
        found = queue.find("a")
        assert found is not None
        assert (found.attempt, found.last_error) == (1, "timed out after 0.1 s")
        assert len(run.witness.finished) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_handler_within_its_limit_is_left_alone(kind: str, tmp_path: Path) -> None:
    queue, ledger = memory(), tmp_path / "ledger"
    queue.enqueue(job("sleep:0.05", ledger, id="a"))
    with running(queue, kind, timeout=20) as run:
        run.witness.until_finished(1)
    assert run.witness.verdicts() == ["acked"]


def deaf_to_sigterm(given: Job) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sleep", "97"])  # a grandchild, which must not stay behind
    note(given.payload.decode(), f"pid {os.getpid()}")
    time.sleep(60)


def test_a_process_that_ignores_sigterm_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    queue, ledger, witness = memory(max_attempts=1), tmp_path / "ledger", Witness()
    queue.enqueue(Job(payload=str(ledger).encode()))
    with started(Pool(queue, deaf_to_sigterm, process=True, timeout=1.5, listener=witness), witness):
        witness.until_finished(1)
    assert [dead.last_error for dead in queue.dead()] == ["timed out after 1.5 s"]
    group = int(read(ledger)[0].split()[1])

    def gone() -> bool:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        return all(state(group, entry) in (None, "Z") for entry in Path("/proc").iterdir())

    wait_until(gone)


def state(group: int, entry: Path) -> str | None:
    """The state of a process that is in the group, else None."""
    try:
        fields = (entry / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0] if int(fields[2]) == group else None
