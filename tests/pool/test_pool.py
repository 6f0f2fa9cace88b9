"""What a healthy pool does all day."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from faulty import faulty
from pool_kit import KINDS, Witness, job, memory, ours, read, running, started

from headrace.job import Job, State
from headrace.pool import Call, Constant, Finished, Pool, PoolState, Started, Unserved
from headrace.testing.clock import START, VirtualClock, run_virtual, wait_until


@pytest.mark.parametrize("kind", ["async", "thread"])
def test_never_more_handlers_run_than_there_are_workers(kind: str) -> None:
    lock = threading.Lock()
    now = most = 0

    def enter() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)

    def leave() -> None:
        nonlocal now
        with lock:
            now -= 1

    def in_thread(given: Job) -> None:
        enter()
        threading.Event().wait(0.005)
        leave()

    async def in_loop(given: Job) -> None:
        enter()
        await asyncio.sleep(0.005)
        leave()

    queue = memory()
    queue.enqueue_many([Job() for _ in range(200)])
    queue.close()
    summary = Pool(queue, in_thread if kind == "thread" else in_loop, workers=5).run()
    assert summary.acked == 200
    assert most == 5
    wait_until(lambda: ours() == [])


def test_it_never_fetches_more_than_can_begin_at_once(tmp_path: Path) -> None:
    queue, ledger = memory(), tmp_path / "ledger"
    queue.enqueue_many([job("polite:30", ledger) for _ in range(10)])
    with running(queue, "thread", workers=3) as run:
        wait_until(lambda: len(read(ledger)) == 3)
        assert (queue.stats().inflight, queue.stats().ready) == (3, 7)
        run.pool.stop(0)


def test_acks_of_what_ended_together_are_written_together() -> None:
    queue, store = faulty()
    queue.enqueue_many([Job() for _ in range(400)])
    queue.close()

    async def handler(given: Job) -> None:
        pass

    assert Pool(queue, handler, workers=40).run().acked == 400
    assert store.calls["ack"] <= 20


def test_a_listener_hears_the_whole_story() -> None:
    clock = VirtualClock()
    queue, witness = memory(clock=clock), Witness()
    queue.enqueue(Job(id="a"))
    queue.close()

    async def handler(given: Job) -> None:
        await asyncio.sleep(2)
        raise ValueError("no")

    async def main() -> None:
        pool = Pool(queue, handler, listener=witness, retry=Constant(base=1, jitter="none"), workers=1)
        running = asyncio.create_task(pool.run_async())
        await asyncio.sleep(2.5)
        pool.stop()
        await running

    run_virtual(main(), clock)
    first, started_, finished, *phases = witness.events
    assert first == PoolState("running", "started")
    assert isinstance(started_, Started)
    assert (started_.job.id, started_.job.attempt) == ("a", 1)
    assert isinstance(finished, Finished)
    assert (finished.verdict, finished.seconds, finished.error) == ("nacked", 2.0, "ValueError: no")
    assert [phase.phase for phase in phases if isinstance(phase, PoolState)] == ["draining", "stopped"]


def test_retries_wait_by_the_queues_clock_until_the_attempts_are_spent() -> None:
    clock = VirtualClock()
    queue = memory(clock=clock, max_attempts=4, lease=1000)
    queue.enqueue(Job(id="a"))
    seen: list[float] = []

    async def handler(given: Job) -> None:
        seen.append((clock.now() - START).total_seconds())
        raise ValueError("no")

    async def main() -> None:
        pool = Pool(queue, handler, retry=Constant(base=7, jitter="none"))
        running = asyncio.create_task(pool.run_async())
        await asyncio.sleep(100)
        pool.stop()
        await running

    run_virtual(main(), clock)
    assert seen == [0, 7, 14, 21]
    assert [dead.attempt for dead in queue.dead()] == [4]


def test_a_job_that_fails_three_thousand_times_is_still_retried() -> None:
    clock = VirtualClock()
    queue = memory(clock=clock, max_attempts=5000, lease=10_000)
    queue.enqueue(Job(id="a"))

    async def main() -> int:
        attempts = 0
        done = asyncio.Event()

        async def handler(given: Job) -> None:
            nonlocal attempts
            attempts = given.attempt
            if attempts == 3000:
                done.set()
            raise ValueError("no")

        pool = Pool(queue, handler)
        running = asyncio.create_task(pool.run_async())
        await done.wait()
        pool.stop()
        await running
        return attempts

    assert run_virtual(main(), clock) == 3000
    found = queue.find("a")
    assert found is not None
    assert found.state is State.DELAYED


class Deploying:
    """Knows only the tasks that are listed."""

    def __init__(self, *known: str) -> None:
        self.known = known

    def resolve(self, given: Job) -> Call:
        if given.id not in self.known:
            raise Unserved(f"no task {given.id!r} here")
        return Call(function=async_noop, kind="async", name=given.id)


async def async_noop() -> None:
    pass


def test_an_unknown_task_waits_for_another_worker_without_using_attempts_then_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = VirtualClock()
    queue = memory(clock=clock, max_attempts=2, lease=1000)
    queue.enqueue_many([Job(id="known"), Job(id="new")])

    async def main() -> None:
        pool = Pool(queue, Deploying("known"), retry=Constant(base=1, jitter="none"), unserved_grace=60)
        running = asyncio.create_task(pool.run_async())
        await asyncio.sleep(50)
        waiting = queue.find("new")
        assert waiting is not None
        assert (waiting.state, waiting.attempt) == (State.DELAYED, 0)
        assert queue.stats().acked == 1
        await asyncio.sleep(50)
        pool.stop()
        await running

    run_virtual(main(), clock)
    (dead,) = queue.dead()
    assert (dead.id, dead.attempt, dead.last_error) == ("new", 2, "Unserved: no task 'new' here")
    assert caplog.text.count("given back, for 60 s, to a worker that can do it") == 1


def test_an_unknown_task_is_done_by_the_worker_that_knows_it() -> None:
    queue = memory()
    queue.enqueue(Job(id="new"))
    old, new = Witness(), Witness()
    with started(Pool(queue, Deploying(), listener=old), old):
        old.until_finished(1)
        with started(Pool(queue, Deploying("new"), listener=new), new):
            wait_until(lambda: queue.stats().acked == 1)
    assert old.verdicts()[0] == "released"
    assert queue.stats().retried == 0


def test_context_variables_reach_the_handler_and_do_not_leak_back() -> None:
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="nobody")
    seen: list[str] = []

    def in_thread(given: Job) -> None:
        seen.append(tenant.get())
        tenant.set("leaked")

    async def in_loop(given: Job) -> None:
        in_thread(given)

    for handler in (in_thread, in_loop):
        queue = memory()
        queue.enqueue_many([Job() for _ in range(3)])
        queue.close()
        context = contextvars.copy_context()
        context.run(tenant.set, "acme")
        context.run(Pool(queue, handler, workers=1).run)
    assert seen == ["acme"] * 6


def test_health_tells_when_things_last_worked() -> None:
    clock = VirtualClock()
    queue = memory(clock=clock, lease=30)
    with running(queue, "async") as run:
        wait_until(lambda: run.pool.health().phase == "running")
        clock.until_waiting(1)
        assert run.pool.health().ok
        for _ in range(4):
            clock.advance(5)
            wait_until(lambda: run.pool.health().fetch_age == 0)
        wait_until(lambda: run.pool.health().heartbeat_age is not None)
        health = run.pool.health()
        assert (health.running, health.zombies, health.loop_lag) == (0, 0, 0)
        assert health.ok
    assert run.pool.health().phase == "stopped"
    assert not run.pool.health().ok


def test_jobs_that_come_while_it_runs_are_taken_at_once() -> None:
    queue, witness = memory(), Witness()

    async def handler(given: Job) -> None:
        pass

    with started(Pool(queue, handler, listener=witness), witness):
        for number in range(50):
            queue.enqueue(Job())
            if number % 10 == 9:
                witness.until_finished(number + 1)
    assert witness.verdicts() == ["acked"] * 50


@pytest.mark.parametrize("kind", KINDS)
def test_what_fails_is_logged_without_its_payload(kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    queue = memory(max_attempts=1)
    queue.enqueue(Job(id="a", payload=f'["raise", "{tmp_path}/hunter2"]'.encode()))
    with running(queue, kind) as run:
        run.witness.until_finished(1)
    assert "attempt 1 of 1 failed, no attempts are left: ValueError: no" in caplog.text
    assert "hunter2" not in caplog.text


def test_both_faces_will_do() -> None:
    for face in ("as_async", "as_sync"):
        queue: Any = memory()
        queue.enqueue(Job())
        queue.close()
        given = queue.as_async if face == "as_async" else queue.as_async.as_sync
        assert Pool(given, async_noop_for).run().acked == 1


async def async_noop_for(given: Job) -> None:
    assert given.lease_until is not None
    assert given.enqueued_at is not None
    assert given.lease_until - given.enqueued_at < timedelta(seconds=60)
