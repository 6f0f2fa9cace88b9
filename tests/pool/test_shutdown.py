"""Stopping in two beats: nothing lost, nothing held, nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from pool_kit import KINDS, Witness, async_handler, job, make, memory, ours, read, running, started, sync_handler

from headrace.errors import ConfigError
from headrace.job import Job, Retry, State
from headrace.pool import Pool, PoolState
from headrace.testing.clock import VirtualClock, run_virtual, wait_until


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.mark.parametrize("kind", KINDS)
def test_what_runs_finishes_and_what_waits_stays_ready_with_its_attempt(kind: str, ledger: Path) -> None:
    queue = memory(lease=60)
    queue.enqueue_many([job("sleep:0.5", ledger, id=f"{number:02}") for number in range(20)])
    with running(queue, kind, workers=2) as run:
        wait_until(lambda: len(read(ledger)) == 2)
        run.pool.stop()
        summary = run.join()
    assert (summary.picked_up, summary.acked, summary.left, summary.forced) == (2, 2, 0, False)
    stats = queue.stats()
    assert (stats.ready, stats.inflight, stats.dead) == (18, 0, 0)
    left = queue.dequeue_many(20, 0)
    assert [(waiting.id, waiting.attempt) for waiting in left] == [(f"{number:02}", 1) for number in range(2, 20)]
    wait_until(lambda: ours() == [])


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_finish_in_time_is_cancelled_and_given_back_with_its_attempt(kind: str, ledger: Path) -> None:
    queue = memory(lease=60)
    queue.enqueue_many([job("polite:30", ledger, id=name) for name in "ab"])
    with running(queue, kind, workers=2) as run:
        wait_until(lambda: len(read(ledger)) == 2)
        begun = time.monotonic()
        run.pool.stop(drain=0.2)
        summary = run.join()
        assert time.monotonic() - begun < 3
    assert (summary.released, summary.left, summary.forced) == (2, 0, True)
    for name in "ab":
        found = queue.find(name)
        assert found is not None
        assert (found.state, found.attempt) == (State.READY, 0)
    if kind != "process":
        wait_until(lambda: sum(line.startswith("told:the-worker-is-shutting-down") for line in read(ledger)) == 2)
    wait_until(lambda: ours() == [])


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_stop_ends_at_once(kind: str, ledger: Path) -> None:
    queue = memory(lease=60)
    queue.enqueue(job("stubborn:2" if kind != "process" else "stubborn:30", ledger, id="a"))
    with running(queue, kind, drain=3600) as run:
        wait_until(lambda: read(ledger) != [])
        run.pool.stop()
        wait_until(lambda: run.pool.health().phase == "draining")
        assert not run.ended
        begun = time.monotonic()
        run.pool.stop()
        summary = run.join()
        assert time.monotonic() - begun < 2
    assert (summary.released, summary.forced) == (1, True)
    found = queue.find("a")
    assert found is not None
    assert (found.state, found.attempt) == (State.READY, 0)
    if kind == "thread":
        wait_until(lambda: ours() == [])


def test_an_idle_pool_stops_at_once() -> None:
    with running(memory(), "async") as run:
        wait_until(lambda: run.pool.health().phase == "running")
        begun = time.monotonic()
        run.pool.stop()
        assert run.join().reason == "stopped"
        assert time.monotonic() - begun < 1


def test_a_closed_queue_is_worked_off_and_then_the_pool_returns(ledger: Path) -> None:
    queue = memory()
    queue.enqueue_many([job("return", ledger) for _ in range(30)])
    queue.close()
    pool, witness = make(queue, "async")
    summary = pool.run()
    assert (summary.acked, summary.reason) == (30, "the queue is closed and drained")
    assert [event.phase for event in witness.events if isinstance(event, PoolState)] == [
        "running",
        "draining",
        "stopped",
    ]
    pool.stop()  # too late, and harmless


def test_what_a_closed_queue_gets_back_from_its_last_handlers_is_run_too() -> None:
    queue = memory()
    queue.enqueue(Job(id="a"))
    queue.close()
    attempts: list[int] = []

    async def handler(given: Job) -> None:
        attempts.append(given.attempt)
        await asyncio.sleep(0.01)
        if given.attempt < 3:
            raise Retry(delay=0)

    assert Pool(queue, handler, workers=2).run().acked == 1
    assert attempts == [1, 2, 3]


def test_a_stop_before_the_run_makes_it_return(ledger: Path) -> None:
    queue = memory()
    queue.enqueue(job("return", ledger, id="a"))
    pool, _ = make(queue, "async")
    assert not pool.health().ok
    pool.stop()
    assert pool.run().left == 0
    found = queue.find("a")
    assert found is not None
    assert (found.state, found.attempt) == (State.READY, 0)


def test_a_pool_runs_once() -> None:
    queue = memory()
    queue.close()
    pool, _ = make(queue, "async")
    pool.run()
    assert pool.health().reasons == ("stopped",)
    with pytest.raises(ConfigError, match="run already"):
        pool.run()


def test_a_bad_drain_is_refused_where_it_is_given() -> None:
    with pytest.raises(ConfigError, match="drain"):
        make(memory(), "async")[0].stop(drain=-1)


def test_a_handler_may_stop_its_own_pool(ledger: Path) -> None:
    queue = memory()
    queue.enqueue_many([Job(id="a"), Job(id="b")])

    def handler(given: Job) -> None:
        pool.stop()

    pool = Pool(queue, handler, workers=1)
    assert pool.run().acked == 1


async def test_a_cancelled_run_gives_back_what_it_runs(ledger: Path) -> None:
    queue = memory()
    queue.enqueue(job("polite:30", ledger, id="a"))
    pool, witness = make(queue.as_async, "async")
    task = asyncio.create_task(pool.run_async())
    while read(ledger) == []:  # noqa: ASYNC110  # a file tells no event
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    found = queue.find("a")
    assert found is not None
    assert (found.state, found.attempt) == (State.READY, 0)
    assert witness.verdicts() == ["released"]


def test_the_drain_is_measured_by_the_queues_clock() -> None:
    clock = VirtualClock()
    queue = memory(lease=10_000, clock=clock)
    queue.enqueue(Job(id="short"))
    queue.enqueue(Job(id="long"))

    async def handler(given: Job) -> None:
        await asyncio.sleep(20 if given.id == "short" else 100)

    async def main() -> tuple[int, int, int]:
        pool = Pool(queue, handler, workers=2)
        running = asyncio.create_task(pool.run_async())
        await asyncio.sleep(1)
        begun = clock.steady()
        pool.stop(drain=50)
        summary = await running
        return summary.acked, summary.released, clock.steady() - begun

    assert run_virtual(main(), clock) == (1, 1, 50_000_000)


def signal_self(number: int, ledger: Path, after: int = 1) -> None:
    wait_until(lambda: len(read(ledger)) >= after)
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_drains_and_says_how_to_force(
    number: int, ledger: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = {which: signal.getsignal(which) for which in (signal.SIGTERM, signal.SIGINT)}
    queue = memory()
    queue.enqueue(job("sleep:0.4", ledger))
    sender = threading.Thread(target=signal_self, args=(number, ledger))
    sender.start()
    summary = Pool(queue, async_handler).run()
    sender.join()
    assert (summary.acked, summary.forced) == (1, False)
    assert summary.reason == signal.Signals(number).name
    assert caplog.text.count("once more to end at once") == 1
    assert {which: signal.getsignal(which) for which in before} == before


def test_the_second_signal_ends_at_once_and_gives_back(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.pool.signals.PATIENCE", 30)  # on a slow machine it would end the tests
    queue = memory(lease=60)
    queue.enqueue(job("polite:30", ledger, id="a"))
    pool = Pool(queue, sync_handler)

    def twice() -> None:
        signal_self(signal.SIGINT, ledger)
        wait_until(lambda: pool.health().phase == "draining")
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=twice)
    sender.start()
    begun = time.monotonic()
    summary = pool.run()
    sender.join()
    assert time.monotonic() - begun < 5
    assert (summary.released, summary.forced) == (1, True)
    found = queue.find("a")
    assert found is not None
    assert (found.state, found.attempt) == (State.READY, 0)


def test_jobs_that_cannot_be_given_back_are_left_to_their_leases(
    ledger: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from faulty import faulty

    queue, store = faulty(lease=60)
    queue.enqueue(job("polite:30", ledger, id="a"))
    with running(queue, "async") as run:
        wait_until(lambda: read(ledger) != [])
        store.break_("release")
        run.pool.stop(drain=0)
        summary = run.join()
    assert (summary.left, summary.released) == (1, 0)
    assert "return when their leases end" in caplog.text
    assert queue.stats().inflight == 1


def test_a_pool_on_an_async_face_stops_from_another_thread(ledger: Path) -> None:
    queue = memory()
    witness = Witness()
    queue.enqueue(job("return", ledger))
    pool = Pool(queue.as_async, async_handler, listener=witness)
    with started(pool, witness) as run:
        witness.until_finished(1)
        threading.Thread(target=pool.stop).start()
        assert run.join().acked == 1
