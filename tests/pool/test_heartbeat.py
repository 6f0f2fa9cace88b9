"""Leases of what runs are kept, whatever the handlers do; those that are lost are noticed."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

import pytest
from faulty import faulty
from pool_kit import KINDS, Witness, job, memory, read, running, started

from headrace.job import Job
from headrace.pool import Pool
from headrace.pool.heartbeat import interval_for
from headrace.testing.clock import VirtualClock, wait_until


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_longer_than_its_lease_runs_once(kind: str, tmp_path: Path) -> None:
    queue, ledger = memory(lease=0.3), tmp_path / "ledger"
    queue.enqueue_many([job("sleep:1.2", ledger) for _ in range(3)])
    with running(queue, kind) as first, running(queue, kind) as idle:
        wait_until(lambda: len(first.witness.finished) + len(idle.witness.finished) == 3)
        assert first.witness.verdicts() + idle.witness.verdicts() == ["acked"] * 3
    assert sum(line.startswith("start") for line in read(ledger)) == 3
    assert queue.stats().expired_leases == 0


def test_fifty_leases_are_kept_by_few_calls(tmp_path: Path) -> None:
    queue, ledger = memory(lease=0.6), tmp_path / "ledger"
    queue.enqueue_many([job("sleep:1.5", ledger) for _ in range(50)])
    with running(queue, "async", workers=50) as run:
        run.witness.until_finished(50)
    assert run.witness.verdicts() == ["acked"] * 50
    assert (queue.stats().expired_leases, queue.stats().acked) == (0, 50)


def test_a_handler_that_blocks_the_loop_costs_nobody_a_lease_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    queue, ledger = memory(lease=0.6), tmp_path / "ledger"
    neighbours = [job("sleep:0.5", ledger, id=f"y{number}") for number in range(3)]
    queue.enqueue_many([*neighbours, job("block:2.2", ledger, id="x")])
    with caplog.at_level(logging.WARNING), running(queue, "async") as run:
        wait_until(lambda: "start x 1" in read(ledger))
        wait_until(lambda: run.pool.health().loop_lag > 1)
        assert "the event loop has been blocked" in run.pool.health().reasons[0]
        run.witness.until_finished(4)
        wait_until(lambda: run.pool.health().ok)
    assert sorted(line for line in read(ledger) if line.startswith("start")) == [
        "start x 1",
        "start y0 1",
        "start y1 1",
        "start y2 1",
    ]
    assert run.witness.verdicts() == ["acked"] * 4
    assert "blocked for" in caplog.text
    assert "pool_kit:async_handler (job 'x')" in caplog.text
    assert "the event loop goes on" in caplog.text


def test_one_that_has_ended_keeps_its_lease_while_a_neighbour_blocks_the_loop(tmp_path: Path) -> None:
    queue, ledger = memory(lease=0.6), tmp_path / "ledger"
    queue.enqueue_many([job("return", ledger, id="quick"), job("block:1.5", ledger, id="slow")])
    with running(queue, "async", workers=2) as run:
        run.witness.until_finished(2)
    assert run.witness.verdicts() == ["acked"] * 2
    assert queue.stats().expired_leases == 0


def test_one_that_has_ended_keeps_its_lease_while_another_is_written_down(tmp_path: Path) -> None:
    queue, store = faulty(lease=0.6)
    store.hang["bury"] = threading.Event()
    queue.enqueue_many([job("discard", tmp_path / "ledger") for _ in range(2)])
    with running(queue, "thread", workers=2) as run:
        wait_until(lambda: store.calls["bury"] == 1)
        before = store.calls["extend"]
        wait_until(lambda: store.calls["extend"] >= before + 5)  # longer than the lease
        store.hang["bury"].set()
        run.witness.until_finished(2)
    assert run.witness.verdicts()[1] == "buried"


def spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


@pytest.mark.parametrize("kind", ["async", "thread"])
def test_a_handler_that_holds_the_interpreter_costs_nobody_a_lease(kind: str) -> None:
    def in_thread(job: Job) -> None:
        spin(1.5)

    async def in_loop(job: Job) -> None:
        spin(1.5)

    queue, witness = memory(lease=0.6), Witness()
    queue.enqueue(Job())
    with started(Pool(queue, in_thread if kind == "thread" else in_loop, listener=witness), witness):
        witness.until_finished(1)
    assert witness.verdicts() == ["acked"]
    assert queue.stats().expired_leases == 0


def test_beats_come_every_third_of_the_lease_by_the_queues_clock() -> None:
    clock = VirtualClock()
    queue, witness = memory(lease=30.0, clock=clock), Witness()
    queue.enqueue(Job(id="a"))
    begun, go = threading.Event(), threading.Event()

    def handler(job: Job) -> None:
        begun.set()
        assert go.wait(20)

    with started(Pool(queue, handler, listener=witness, workers=1), witness) as run:
        assert begun.wait(10)
        engine = run.pool._engine
        assert engine is not None
        held = next(iter(engine.heart.held))
        for _ in range(12):  # 120 s: four leases long
            clock.until_waiting(1)
            clock.advance(10)
            wait_until(lambda: held.lease_end == clock.steady() + 30_000_000)
            assert held.job.lease_until is not None
            assert (held.job.lease_until - clock.now()).total_seconds() == 30
        go.set()
        witness.until_finished(1)
    assert witness.verdicts() == ["acked"]
    assert queue.stats().expired_leases == 0


def test_the_interval_is_a_third_of_the_lease_and_at_most_half() -> None:
    assert interval_for(30, None) == 10
    assert interval_for(30, 15) == 15
