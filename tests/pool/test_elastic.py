"""The pool changes its size, by load and when told to; no job ever notices."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import pytest
from elastic_kit import Gauge, eager, in_virtual_time
from pool_kit import KINDS, Witness, job, memory, ours, read, running, started, sync_handler

from headrace.errors import ConfigError
from headrace.job import Job
from headrace.pool import Balance, Balanced, Pool, Schedule
from headrace.testing.clock import VirtualClock, run_virtual, wait_until

# F17, in virtual time


def test_a_burst_a_long_job_and_another_burst() -> None:
    clock, gauge, witness = VirtualClock(), Gauge(), Witness()
    queue = memory(clock=clock)
    sizes: list[int] = []

    def seconds(given: Job) -> float:
        return float(given.payload)

    balance = eager(1, 8, heartbeat=0.2, sleep_interval=1.0)
    pool = Pool(queue, gauge.handler(seconds), balance=balance, listener=witness)

    async def after(seconds: float) -> None:
        for _ in range(round(seconds / 0.05)):
            await asyncio.sleep(0.05)
            health = pool.health()
            sizes.append(health.size)
            assert min(health.active, health.asleep, health.idle) >= 0

    async def story() -> None:
        queue.enqueue_many([Job(b"0.2") for _ in range(200)])
        await after(3)
        assert pool.health().active == 8, "in 3 s it reaches its maximum"
        await after(5)
        assert queue.stats().size == 0
        queue.enqueue(Job(b"6", id="long"))
        await after(2.2)
        assert pool.health().size == 1, "back at its minimum within two cool-downs"
        assert pool.health().running == 1
        queue.enqueue_many([Job(b"0.2") for _ in range(50)])
        await after(0.2)
        assert pool.health().active > 1, "it grows although its only worker is busy"
        await after(0.6)
        assert pool.health().active == 8
        await after(5)

    in_virtual_time(pool, story, clock)
    assert (min(sizes), max(sizes)) == (1, 8)
    assert gauge.most == 8
    assert gauge.starts["long"] == 1
    assert witness.verdicts().count("acked") == 251
    assert queue.stats().expired_leases == 0


def test_every_change_is_told_with_its_reason() -> None:
    clock, witness = VirtualClock(), Witness()
    queue = memory(clock=clock, capacity=10)
    pool = Pool(queue, Gauge().handler(lambda _: 1.0), balance=Balance(min=1, max=4), listener=witness)

    async def story() -> None:
        queue.enqueue_many([Job() for _ in range(10)])
        await asyncio.sleep(20)

    in_virtual_time(pool, story, clock)
    told = [event for event in witness.events if isinstance(event, Balanced)]
    assert all(event.move.reason for event in told)
    assert any("fullness 1 >= 0.75" in event.move.reason for event in told)
    assert sum(event.move.wake + event.move.start for event in told) == sum(event.move.sleep for event in told) > 0


def test_a_pool_of_nobody_wakes_for_the_first_job_and_ends_with_its_queue() -> None:
    clock, witness = VirtualClock(), Witness()
    queue = memory(clock=clock)
    balance = Balance(min=0, max=4, sleep_interval=1.0)
    pool = Pool(queue, Gauge().handler(lambda _: 0.5), balance=balance, listener=witness)

    async def main() -> None:
        working = asyncio.create_task(pool.run_async())
        await asyncio.sleep(100)
        assert pool.health().size == 0
        queue.enqueue(Job())
        await asyncio.sleep(0.6)
        assert witness.verdicts() == ["acked"]
        await asyncio.sleep(100)
        assert pool.health().size == 0
        queue.close()
        summary = await working
        assert summary.reason == "the queue is closed and drained"

    run_virtual(main(), clock)


def test_a_goal_is_held() -> None:
    clock, witness = VirtualClock(), Witness()
    queue = memory(clock=clock)
    gauge = Gauge()
    balance = Balance(min=1, max=20, target_age=2.0)
    pool = Pool(queue, gauge.handler(lambda _: 0.5), balance=balance, listener=witness)
    ages: list[float] = []

    async def story() -> None:
        for second in range(600):  # 10 jobs a second of half a second each: 5 workers at least
            queue.enqueue(Job())
            await asyncio.sleep(0.1)
            if second > 200:
                ages.append(queue.stats().oldest_ready)

    in_virtual_time(pool, story, clock)
    assert max(ages) < 2.0
    assert 5 <= gauge.most <= 20


def test_neither_many_jobs_nor_short_ones_have_the_queue_counted_all_the_time() -> None:
    clock, witness = VirtualClock(), Witness()
    queue = memory(clock=clock)
    pool = Pool(queue, Gauge().handler(lambda _: 0.0), balance=Balance(min=1, max=8), listener=witness)

    async def story() -> None:
        for _ in range(5000):
            queue.enqueue(Job())
            await asyncio.sleep(0.001)

    in_virtual_time(pool, story, clock)
    assert len(witness.finished) == 5000
    assert pool._engine is not None
    assert 10 <= pool._engine.floor.foreman.calibrations <= 17  # each heartbeat, one between, each thousand jobs


def test_many_jobs_that_are_fetched_ahead_are_no_burst() -> None:
    clock, witness = VirtualClock(), Witness()
    queue = memory(clock=clock)
    queue.enqueue_many([Job() for _ in range(5000)])
    balance = Balance(min=1, max=8, heartbeat=60.0, force_calibration_limit=500)
    pool = Pool(queue, Gauge().handler(lambda _: 0.0001), balance=balance, listener=witness, prefetch=5000)

    async def story() -> None:
        await asyncio.sleep(5)

    in_virtual_time(pool, story, clock)
    assert len(witness.finished) == 5000
    assert pool._engine is not None
    assert pool._engine.floor.foreman.calibrations <= 5


# Told to


@pytest.mark.parametrize("balance", [None, eager(3, 5)])
def test_resized_to_zero_and_back(balance: Balance | None) -> None:
    clock, gauge, witness = VirtualClock(), Gauge(), Witness()
    queue = memory(clock=clock)
    settings: dict[str, Any] = {"workers": 3} if balance is None else {"balance": balance}
    pool = Pool(queue, gauge.handler(lambda _: 2), listener=witness, **settings)

    async def story() -> None:
        queue.enqueue_many([Job() for _ in range(3)])
        await asyncio.sleep(1)
        pool.resize(0)
        await asyncio.sleep(0)
        queue.enqueue_many([Job() for _ in range(2)])
        await asyncio.sleep(10)
        assert witness.verdicts() == ["acked"] * 3, "what ran ended well, nothing else began"
        assert queue.stats().ready == 2
        assert (pool.health().size, pool.health().ok) == (0, True)
        if balance is None:
            pool.resize(1)
        else:
            pool.resize(min=1, max=1)  # by the load again
        await asyncio.sleep(1)
        assert pool.health().running == 1
        pool.resize(4)
        await asyncio.sleep(0.5)
        assert pool.health().running == 2
        await asyncio.sleep(3)

    in_virtual_time(pool, story, clock)
    assert witness.verdicts() == ["acked"] * 5
    assert gauge.most == 3


@pytest.mark.parametrize("balance", [None, eager(3, 5)])
def test_a_pool_of_zero_workers_ends_with_its_queue_and_takes_no_job(balance: Balance | None) -> None:
    clock, witness = VirtualClock(), Witness()
    queue = memory(clock=clock)
    settings: dict[str, Any] = {"workers": 3} if balance is None else {"balance": balance}
    pool = Pool(queue, Gauge().handler(lambda _: 2), listener=witness, **settings)

    async def main() -> None:
        working = asyncio.create_task(pool.run_async())
        await asyncio.sleep(1)
        pool.resize(0)
        await asyncio.sleep(60)
        queue.enqueue(Job())
        await asyncio.sleep(60)
        assert queue.stats().ready == 1
        queue.close()
        await asyncio.sleep(60)
        assert not working.done(), "what is ready waits for somebody"
        assert not witness.finished
        pool.resize(1)
        await asyncio.sleep(1)
        pool.resize(0)  # while it runs: it ends, and then the pool does
        summary = await asyncio.wait_for(working, 60)
        assert (summary.reason, summary.picked_up, summary.acked) == ("the queue is closed and drained", 1, 1)

    run_virtual(main(), clock)


def test_a_pool_of_zero_workers_ends_when_somebody_else_has_drained_its_closed_queue() -> None:
    clock = VirtualClock()
    queue = memory(clock=clock)
    queue.enqueue(Job())
    pool = Pool(queue, Gauge().handler(lambda _: 2), workers=3)
    pool.resize(0)

    async def main() -> None:
        working = asyncio.create_task(pool.run_async())
        await asyncio.sleep(60)
        queue.close()
        await asyncio.sleep(60)
        queue.ack_many(queue.dequeue_many(1, 0))
        summary = await asyncio.wait_for(working, 60)
        assert (summary.reason, summary.picked_up) == ("the queue is closed and drained", 0)

    run_virtual(main(), clock)


def test_jobs_that_come_to_workers_who_have_just_left_go_back_and_lose_nothing() -> None:
    clock, gauge, witness = VirtualClock(), Gauge(), Witness()
    queue = memory(clock=clock)
    pool = Pool(queue, gauge.handler(lambda _: 1), workers=8, listener=witness)

    async def story() -> None:
        await asyncio.sleep(1)  # a fetch for eight is under way
        pool.resize(2)
        await asyncio.sleep(0)
        queue.enqueue_many([Job(id=str(number)) for number in range(8)])
        await asyncio.sleep(10)

    in_virtual_time(pool, story, clock)
    assert gauge.most == 2
    assert set(gauge.starts.values()) == {1}
    assert witness.verdicts().count("acked") == 8
    assert all(event.job.attempt == 1 for event in witness.finished)


def test_limits_can_be_changed_while_it_runs_and_a_fixed_number_overrides_them() -> None:
    clock = VirtualClock()
    pool = Pool(memory(clock=clock), Gauge().handler(lambda _: 1), balance=Balance(min=1, max=4, sleep_interval=0.5))
    pool.resize(min=2)  # before it runs

    async def story() -> None:
        await asyncio.sleep(3)
        assert pool.health().active == 2
        pool.resize(min=3, max=9)
        await asyncio.sleep(0.1)
        assert pool.health().active == 3
        pool.resize(7)
        await asyncio.sleep(30)
        assert pool.health().active == 7
        pool.resize(max=3)
        await asyncio.sleep(3)
        assert pool.health().size == 3

    in_virtual_time(pool, story, clock)
    pool.resize(5)  # nobody is there to be told any more


def test_impossible_sizes_are_refused() -> None:
    queue = memory()

    async def handler(given: Job) -> None:
        pass

    impossible: list[tuple[dict[str, Any], str]] = [
        ({"workers": 0}, "workers"),
        ({"workers": 2, "balance": Balance(min=1, max=2)}, "workers"),
        ({"balance": 3}, "balance"),
        ({"schedule": {"08:00-09:00": 1}}, "schedule"),
        ({"schedule": Schedule()}, "schedule"),
        ({"recycle_jobs": 0}, "recycle_jobs"),
        ({"recycle_memory": -1}, "recycle_memory"),
    ]
    for settings, said in impossible:
        with pytest.raises(ConfigError, match=said):
            Pool(queue, handler, **settings)
    fixed, balanced = Pool(queue, handler), Pool(queue, handler, balance=Balance(min=1, max=2))
    wrong: list[tuple[Pool, dict[str, int]]] = [
        (fixed, {"workers": -1}),
        (fixed, {"min": 1}),
        (balanced, {"min": 3}),
        (balanced, {"max": 0}),
        (balanced, {"workers": 1, "max": 2}),
    ]
    for pool, sizes in wrong:
        with pytest.raises(ConfigError):
            pool.resize(**sizes)


# The same with threads and processes, in real time


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("kind", KINDS)
def test_it_grows_and_shrinks_and_leaves_nothing_behind(kind: str, tmp_path: Path) -> None:
    resource_tracker.ensure_running()  # multiprocessing's own, which stays
    queue, ledger, before = memory(), tmp_path / "ledger", descriptors()
    queue.enqueue_many([job("sleep:0.05", ledger) for _ in range(60)])
    most = 0
    with running(queue, kind, workers=None, balance=eager(1, 4)) as run:

        def look() -> int:
            nonlocal most
            health = run.pool.health()
            if health.phase == "running":
                assert 1 <= health.size <= 4
                most = max(most, health.size)
            return health.size

        wait_until(lambda: look() >= 0 and len(run.witness.finished) == 60, 60)
        queue.enqueue(job("sleep:1.5", ledger, id="long"))
        wait_until(lambda: "start long 1" in read(ledger), 20)
        wait_until(lambda: look() == 1, 20)
        assert "end long 1" not in read(ledger), "it shrinks around a job that runs"
        if kind == "thread":
            wait_until(lambda: sum(not name.endswith(("beat", "watch")) for name in names()) == 1)
        run.witness.until_finished(61)
        run.pool.stop()
        run.join()
    assert most == 4
    assert run.witness.verdicts() == ["acked"] * 61
    assert sum(line.startswith("start") for line in read(ledger)) == 61
    wait_until(lambda: not ours() and descriptors() <= before)


def names() -> list[str]:
    return [thread.name for thread in ours()]


def children() -> set[int]:
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(pid) for task in tasks for pid in task.read_text().split()}


def test_processes_of_stopped_workers_end() -> None:
    queue, others = memory(), children()
    with running(queue, "process", workers=3) as run:
        queue.enqueue_many([job("sleep:0.3", Path("/dev/null")) for _ in range(3)])
        run.witness.until_finished(3)
        spawned = children() - others
        assert len(spawned) >= 3
        run.pool.resize(1)
        wait_until(lambda: len(served(others)) == 1)
        run.pool.resize(0)
        wait_until(lambda: not served(others))


def served(others: set[int]) -> set[int]:
    """Our worker processes; multiprocessing has a helper of its own that stays."""
    found = set()
    for pid in children() - others:
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"spawn_main" in command:
            found.add(pid)
    return found


def pid_of(given: Job) -> None:
    with open(given.payload.decode(), "a") as file:
        file.write(f"{os.getpid()}\n")


def hoard(given: Job) -> None:
    global hoarded
    hoarded = bytearray(300_000_000)
    pid_of(given)


hoarded = bytearray()


@pytest.mark.parametrize(
    ("handler", "settings", "jobs", "processes"),
    [
        (pid_of, {"recycle_jobs": 3}, 8, 3),
        (pid_of, {"recycle_memory": 1 << 40}, 3, 1),
        (hoard, {"recycle_memory": 250_000_000}, 2, 2),
    ],
)
def test_a_process_is_replaced_between_two_jobs(
    handler: Callable[[Job], None], settings: dict[str, int], jobs: int, processes: int, tmp_path: Path
) -> None:
    queue, witness, ledger = memory(), Witness(), tmp_path / "pids"
    queue.enqueue_many([Job(str(ledger).encode()) for _ in range(jobs)])
    pool = Pool(queue, handler, workers=1, process=True, listener=witness, **settings)  # type: ignore[arg-type]
    with started(pool, witness):
        witness.until_finished(jobs, 60)
    assert witness.verdicts() == ["acked"] * jobs
    assert len(set(read(ledger))) == processes


def test_a_balanced_pool_gives_back_what_it_cannot_finish(tmp_path: Path) -> None:
    queue, ledger = memory(lease=60), tmp_path / "ledger"
    queue.enqueue_many([job("sleep:0.6", ledger, id=str(number)) for number in range(20)])
    with running(queue, "thread", workers=None, balance=eager(1, 2)) as run:
        wait_until(lambda: sum(line.startswith("start") for line in read(ledger)) >= 2)
        run.pool.stop()
        run.join()
    assert queue.stats().inflight == 0
    assert queue.stats().ready == 20 - run.witness.verdicts().count("acked")
    assert all(given.attempt == 1 for given in queue.dequeue_many(20, 0))


@pytest.mark.parametrize("kind", KINDS)
def test_hung_handlers_are_replaced_in_a_balanced_pool(kind: str, tmp_path: Path) -> None:
    """None of the hung ones ends before the test does, and they are as many as there may be workers."""
    queue, ledger, witness, let_go = memory(max_attempts=1), tmp_path / "ledger", Witness(), threading.Event()

    async def in_loop(given: Job) -> None:
        while given.payload == b"hang" and not let_go.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    def in_thread(given: Job) -> None:
        if given.payload == b"hang":
            let_go.wait()

    if kind == "process":
        handler: Any = sync_handler
        hang, quick = (job(act, ledger).payload for act in ("stubborn:60", "return"))
    else:
        handler = in_loop if kind == "async" else in_thread
        hang, quick = b"hang", b""
    pool = Pool(
        queue, handler, process=kind == "process", balance=eager(1, 3), timeout=0.3, listener=witness, zombies=3
    )
    with started(pool, witness):
        try:
            queue.enqueue_many([Job(hang) for _ in range(3)])
            witness.until_finished(3)
            assert pool.health().zombies == (0 if kind == "process" else 3)
            queue.enqueue_many([Job(quick) for _ in range(30)])
            witness.until_finished(33)
            assert pool.health().ok
        finally:
            let_go.set()
        wait_until(lambda: pool.health().zombies == 0)
        wait_until(lambda: pool.health().size == 1)
    assert [dead.last_error for dead in queue.dead()] == ["timed out after 0.3 s"] * 3
    assert witness.verdicts().count("acked") == 30


@pytest.mark.parametrize("act", ["SystemExit", "KeyboardInterrupt", "GeneratorExit", "CancelledError", "Base"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_exception_costs_a_balanced_pool_a_worker(kind: str, act: str, tmp_path: Path) -> None:
    queue, ledger = memory(max_attempts=1), tmp_path / "ledger"
    queue.enqueue_many([job(act, ledger) for _ in range(6)])
    with running(queue, kind, workers=None, balance=eager(1, 3)) as run:
        run.witness.until_finished(6)
        queue.enqueue_many([job("return", ledger) for _ in range(10)])
        run.witness.until_finished(16)
        assert run.pool.health().ok
    assert run.witness.verdicts().count("acked") == 10


def test_resize_may_be_called_from_any_thread() -> None:
    queue = memory()
    with running(queue, "async", workers=1) as run:
        wait_until(lambda: run.pool.health().phase == "running")
        threads = [threading.Thread(target=run.pool.resize, args=(number,)) for number in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        run.pool.resize(3)
        wait_until(lambda: run.pool.health().active == 3)
