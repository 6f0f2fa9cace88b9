"""Several pools in one process, and pools that signals make larger and smaller."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable

import pool_kit
import pytest

from headrace import ConfigError, Job, Queue
from headrace.pool import Balance, Pool, PoolFailed, run_pools, run_pools_async
from headrace.pool import signals as pool_signals
from headrace.testing.clock import wait_until

LIMIT = 20.0


def closed(name: str, jobs: int) -> Queue:
    queue = pool_kit.memory(queue=name)
    queue.enqueue_many([Job() for _ in range(jobs)])
    queue.close()
    return queue


async def fine(job: Job) -> None: ...


def test_pools_run_together_and_tell_in_order_what_they_did() -> None:
    pools = [Pool(closed(name, jobs), fine) for name, jobs in (("mail", 3), ("reports", 5))]
    assert [each.acked for each in run_pools(pools)] == [3, 5]


def test_slow_jobs_of_one_queue_do_not_hold_up_another() -> None:
    quick_done = threading.Event()

    def slow(job: Job) -> None:
        assert quick_done.wait(LIMIT)

    def quick(job: Job) -> None:
        quick_done.set()

    pools = [Pool(closed("slow", 20), slow, workers=1), Pool(closed("quick", 1), quick, workers=1)]
    assert [each.acked for each in run_pools(pools)] == [20, 1]


def test_no_pools_are_a_mistake() -> None:
    with pytest.raises(ConfigError, match="none to run"):
        run_pools([])


async def test_the_pool_that_fails_ends_the_others_and_is_reported() -> None:
    ended = asyncio.Event()

    async def deaf(job: Job) -> None:
        while not ended.is_set():
            try:
                await ended.wait()
            except asyncio.CancelledError:
                continue

    stuck, other = pool_kit.memory(queue="stuck"), pool_kit.memory(queue="other")
    stuck.enqueue(Job())
    pools = [Pool(stuck, deaf, workers=1, timeout=0.01, zombies=0, drain=0.1), Pool(other, fine, workers=1)]
    with pytest.raises(PoolFailed):
        async with asyncio.timeout(LIMIT):
            await run_pools_async(pools)
    assert pools[1].health().phase == "stopped"
    ended.set()


async def test_when_cancelled_all_stop() -> None:
    pools = [Pool(pool_kit.memory(queue=name), fine) for name in ("a", "b")]
    task = asyncio.create_task(run_pools_async(pools))
    await asyncio.to_thread(wait_until, lambda: all(pool.health().phase == "running" for pool in pools), LIMIT)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(LIMIT):
            await task
    assert [pool.health().phase for pool in pools] == ["stopped", "stopped"]


def stop_all(pools: list[Pool]) -> None:
    for pool in pools:
        pool.stop()


def when_running(pools: list[Pool], then: Callable[[], None]) -> threading.Thread:
    """Signals need the main thread for the pools, so what happens meanwhile has one of its own."""

    def wait_and_do() -> None:
        try:
            wait_until(lambda: all(pool.health().phase == "running" for pool in pools), LIMIT)
            then()
        except BaseException:
            stop_all(pools)
            raise

    thread = threading.Thread(target=wait_and_do)
    thread.start()
    return thread


def test_sigterm_stops_all_pools() -> None:
    pools = [Pool(pool_kit.memory(queue=name), fine) for name in ("a", "b")]
    thread = when_running(pools, lambda: os.kill(os.getpid(), signal.SIGTERM))
    summaries = run_pools(pools)
    thread.join(LIMIT)
    assert [each.forced for each in summaries] == [False, False]


@pytest.fixture
def foreground(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever runs the tests may itself be in a terminal's background."""
    monkeypatch.setattr(pool_signals, "_in_background", lambda: False)


@pytest.mark.usefixtures("foreground")
def test_sigttin_and_sigttou_make_every_pool_larger_and_smaller() -> None:
    fixed = Pool(pool_kit.memory(queue="fixed"), fine, workers=2)
    balanced = Pool(pool_kit.memory(queue="balanced"), fine, balance=Balance(min=3, max=3))
    seen: list[tuple[int, int]] = []

    def see(expected: tuple[int, int]) -> None:
        wait_until(lambda: (fixed.health().active, balanced._balance.max) == expected, LIMIT)
        seen.append(expected)

    def then() -> None:
        see((2, 3))
        os.kill(os.getpid(), signal.SIGTTIN)
        see((3, 4))
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGTTOU)
            see((2, 3) if len(seen) == 2 else (1, 2))
        stop_all([fixed, balanced])

    thread = when_running([fixed, balanced], then)
    run_pools([fixed, balanced])
    thread.join(LIMIT)
    assert seen == [(2, 3), (3, 4), (2, 3), (1, 2)]
    assert balanced._balance is not None
    assert balanced._balance.min == 2


def test_no_pool_shrinks_to_nothing() -> None:
    pool = Pool(pool_kit.memory(), fine, workers=1)
    pool.grow(-1)
    assert pool._size[0] == 1
    pool.grow(2)
    pool.grow(-1)
    assert pool._size[0] == 2
    balanced = Pool(pool_kit.memory(), fine, balance=Balance(min=1, max=1))
    balanced.grow(-1)
    assert balanced._balance is not None
    assert (balanced._balance.min, balanced._balance.max) == (1, 1)


@pytest.mark.parametrize("number", [signal.SIGTTIN, signal.SIGTTOU])
def test_in_a_terminals_background_the_kernels_signals_are_ignored(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """They come again and again until the process stops, or ignores them."""
    monkeypatch.setattr(pool_signals, "_in_background", lambda: True)
    grown: list[int] = []
    before = signal.getsignal(number)
    with pool_signals.resizing(grown.append):
        signal.raise_signal(number)
        assert signal.getsignal(number) is signal.SIG_IGN
    assert grown == []
    assert signal.getsignal(number) is before


def test_outside_the_main_thread_signals_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGTTIN)
    found: list[object] = []

    def look() -> None:
        with pool_signals.resizing(lambda by: None):
            found.append(signal.getsignal(signal.SIGTTIN))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join(LIMIT)
    assert found == [before]
