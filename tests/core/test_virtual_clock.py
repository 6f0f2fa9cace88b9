"""The clock of the tests: it must not lie, lose a waiter, or wake one too early."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import cast

import pytest

from headrace import Job, Pool, connect_async
from headrace.clock import FAR, SECOND
from headrace.testing import VirtualClock
from headrace.testing.clock import START, VirtualLoop, run_virtual, wait_until


class AtOnce:
    """All of an event loop that a timer needs; what it is given, it calls there and then."""

    def call_soon_threadsafe(self, callback: Callable[[], object]) -> None:
        callback()


def locked() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


def waiter(clock: VirtualClock, lock: threading.Lock, until: int) -> tuple[threading.Thread, list[bool]]:
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(clock.acquire(lock, until)), daemon=True)
    before = clock.waiting
    thread.start()
    clock.until_waiting(before + 1)
    return thread, answers


def test_it_stands_still_until_it_is_told_to_move() -> None:
    clock = VirtualClock()
    assert clock.now() == START
    clock.advance(1.5)
    assert (clock.now(), clock.steady()) == (START + timedelta(seconds=1.5), clock.wall())


def test_a_step_moves_the_calendar_alone() -> None:
    clock = VirtualClock()
    before = clock.steady()
    clock.step(-60)
    assert clock.steady() == before
    assert clock.wall() == before - 60 * SECOND


@pytest.mark.parametrize("seconds", [-1, -0.000001, float("nan")])
def test_time_does_not_run_backwards(seconds: float) -> None:
    with pytest.raises(ValueError, match="backwards"):
        VirtualClock().advance(seconds)


def test_a_thread_waits_until_exactly_its_moment() -> None:
    clock = VirtualClock()
    thread, answers = waiter(clock, locked(), clock.steady() + 5 * SECOND)
    clock.advance(4.999999)
    assert clock.waiting == 1
    clock.advance(0.000001)
    thread.join(5)
    assert (answers, clock.waiting) == ([False], 0)


def test_a_thread_that_gets_the_lock_stops_waiting() -> None:
    clock, lock = VirtualClock(), locked()
    thread, answers = waiter(clock, lock, FAR)
    lock.release()
    thread.join(5)
    assert (answers, clock.waiting, clock.next_timer()) == ([True], 0, FAR)


def test_a_moment_that_has_come_is_not_waited_for() -> None:
    clock = VirtualClock()
    assert clock.acquire(threading.Lock(), clock.steady()) is True
    assert clock.acquire(locked(), clock.steady() - 1) is False


def test_a_moment_that_comes_while_somebody_begins_to_wait_for_it_is_not_missed() -> None:
    """The thread asks for a moment that ``advance`` reaches meanwhile, in either order."""
    answers: list[bool] = []

    def wait(clock: VirtualClock, until: int, start: threading.Barrier) -> None:
        lock = locked()
        start.wait()
        answers.append(clock.acquire(lock, until))

    for _ in range(300):
        clock = VirtualClock()
        start = threading.Barrier(2)
        until = clock.steady() + SECOND
        thread = threading.Thread(target=wait, args=(clock, until, start), daemon=True)
        thread.start()
        start.wait()
        clock.advance(1)
        thread.join(5)
        assert answers.pop() is False


def test_a_lock_that_came_as_the_time_ran_out_is_left_held() -> None:
    clock, lock = VirtualClock(), locked()
    thread, _ = waiter(clock, lock, clock.steady() + SECOND)
    lock.release()
    clock.advance(1)
    thread.join(5)
    assert lock.locked()


def test_timers_are_called_in_order_each_at_its_own_moment() -> None:
    clock = VirtualClock()
    begin, seen = clock.steady(), []

    loop = cast(asyncio.AbstractEventLoop, AtOnce())
    for seconds in (3, 1, 2):
        clock.call_at(loop, begin + seconds * SECOND, lambda: seen.append(clock.steady() - begin))
    clock.call_at(loop, begin + SECOND, lambda: seen.append(-1)).cancel()
    assert clock.waiting == 3
    clock.advance(10)
    assert seen == [SECOND, 2 * SECOND, 3 * SECOND]
    assert clock.steady() == begin + 10 * SECOND


def test_a_timer_of_a_loop_that_is_gone_is_nobodys() -> None:
    clock, loop = VirtualClock(), asyncio.new_event_loop()
    clock.call_at(loop, clock.steady() + SECOND, lambda: None)
    loop.close()
    clock.advance(2)


async def test_a_timer_for_a_moment_that_has_come_is_called_at_once_unless_it_is_taken_back() -> None:
    clock, called = VirtualClock(), asyncio.Event()
    clock.call_at(asyncio.get_running_loop(), clock.steady(), called.set)
    async with asyncio.timeout(5):
        await called.wait()
    called.clear()
    clock.call_at(asyncio.get_running_loop(), clock.steady(), called.set).cancel()
    await asyncio.sleep(0)
    assert not called.is_set()


def test_waiting_for_waiters_that_never_come_ends() -> None:
    with pytest.raises(TimeoutError, match="only 0 of 1"):
        VirtualClock().until_waiting(1, limit=0.01)
    with pytest.raises(TimeoutError, match="did not come true"):
        wait_until(lambda: False, limit=0.01)


def test_an_event_loop_sleeps_in_no_time() -> None:
    clock = VirtualClock()

    async def main() -> list[int]:
        order: list[int] = []

        async def sleep(seconds: int) -> None:
            await asyncio.sleep(seconds)
            order.append(seconds)

        await asyncio.gather(sleep(300), sleep(100), sleep(200))
        return order

    assert run_virtual(main(), clock) == [100, 200, 300]
    assert clock.now() - START >= timedelta(seconds=300)
    assert clock.now() - START < timedelta(seconds=301)


def test_time_waits_for_a_thread_that_is_at_work() -> None:
    clock, go = VirtualClock(), threading.Event()

    async def main() -> int:
        timer = asyncio.create_task(asyncio.sleep(1000))
        asyncio.get_running_loop().call_soon(go.set)
        before = clock.steady()
        await asyncio.to_thread(go.wait, 5)
        timer.cancel()
        return clock.steady() - before

    assert run_virtual(main(), clock) == 0


def test_a_loop_in_which_everybody_waits_for_ever_says_so() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    loop = VirtualLoop(VirtualClock(), patience=0.01)
    with pytest.raises(RuntimeError, match="deadlock"):
        loop.run_until_complete(main())
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()


def test_a_call_from_a_thread_that_nobody_told_of_ends_the_wait() -> None:
    clock = VirtualClock()

    async def main() -> bool:
        called = asyncio.Event()
        loop = asyncio.get_running_loop()
        threading.Thread(target=lambda: loop.call_soon_threadsafe(called.set)).start()
        return await called.wait()

    assert run_virtual(main(), clock)


def test_time_waits_for_the_threads_that_it_has_woken() -> None:
    """A pool's heartbeat is a thread: time must not run past the leases that it is about to extend."""
    clock = VirtualClock()
    begun = clock.steady()
    starts: list[float] = []

    async def handler(job: Job) -> None:
        starts.append((clock.steady() - begun) / 1e6)
        await asyncio.sleep(100)  # many leases long

    async def main() -> int:
        queue = connect_async("memory://", clock=clock, lease=30.0)
        for number in range(5):
            await queue.enqueue(Job(delay=10.0 * number))
        pool = Pool(queue, handler, workers=3)
        running = asyncio.create_task(pool.run_async())
        await asyncio.sleep(500)
        pool.stop()
        await running
        return (await queue.stats()).acked

    assert run_virtual(main(), clock) == 5
    assert starts == [0.0, 10.0, 20.0, 100.0, 110.0]
