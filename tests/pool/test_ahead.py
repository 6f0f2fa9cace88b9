"""Jobs that are fetched ahead: how many, in which order, and that they are never lost sight of."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from faulty import FaultyStore, faulty
from pool_kit import Witness, memory, running, started

import headrace
from headrace.clock import FAR, SECOND
from headrace.errors import ConfigError
from headrace.faces import faces
from headrace.job import Job
from headrace.memory.store import MemoryStore
from headrace.pool import Context, Pool, Summary
from headrace.pool.ahead import Ahead
from headrace.pool.run import Run
from headrace.ports import ExecutorPort
from headrace.queue import Capabilities, Queue
from headrace.rules import EXPIRED
from headrace.settings import Settings
from headrace.testing.clock import VirtualClock, run_virtual, wait_until

LEASE = 30 * SECOND


def runs(*jobs: Job) -> list[Run]:
    return [Run(Context(job, VirtualClock()), VirtualClock(), 0, FAR, lambda run: None) for job in jobs]


def staffed() -> Ahead:
    ahead = Ahead(1000, LEASE)
    ahead.staff(8)
    return ahead


def fresh(**given: object) -> Job:
    return Job(**{"attempt": 1, "max_attempts": 5, **given})  # type: ignore[arg-type]


# How many


@pytest.mark.parametrize(
    ("workers", "takes", "lease", "room"),
    [
        (8, 0.001, 30.0, 800),
        (8, 0.0001, 30.0, 1000),  # the most
        (8, 0.0, 30.0, 1000),
        (8, 0.1, 30.0, 8),
        (8, 1.0, 30.0, 0),
        (500, 10.0, 30.0, 5),
        (8, 0.001, 0.1, 80),  # a tenth of the lease, where that is less
        (0, 0.001, 30.0, 0),
    ],
)
def test_as_many_may_wait_as_begin_within_a_moment(workers: int, takes: float, lease: float, room: int) -> None:
    ahead = Ahead(1000, round(lease * SECOND))
    assert ahead.room == 0, "nobody knows yet what a job takes"
    ahead.staff(workers)
    ahead.ended(10, round(10 * takes * SECOND))
    assert ahead.room == room


def test_what_jobs_take_is_learnt_anew_when_it_changes() -> None:
    ahead = staffed()
    ahead.ended(100, 100 * 1000)
    assert ahead.room == 800
    for _ in range(10):
        ahead.ended(100, 100 * SECOND)
    assert ahead.room == 0
    for _ in range(30):
        ahead.ended(100, 100 * 1000)
    assert ahead.room > 700


@pytest.mark.parametrize("job", [fresh(attempt=2), fresh(max_attempts=1)])
def test_only_the_first_of_several_attempts_may_wait_and_until_there_is_none_else_none_does(job: Job) -> None:
    ahead = staffed()
    ahead.ended(100, 100 * 1000)
    one, two, three = runs(fresh(), job, fresh())
    ahead.add([one, two, three])
    assert ahead.misplaced() == [two]
    assert list(ahead.waiting) == [one, three]
    assert ahead.room == 0
    ahead.add(runs(fresh()))
    assert ahead.room == 800


def test_what_has_waited_too_long_is_taken_out_and_fewer_may_wait_then() -> None:
    ahead = staffed()
    ahead.ended(100, 100 * 1000)
    early, late = runs(fresh(), fresh())
    late.began = SECOND // 2
    ahead.add([early, late])
    assert ahead.overdue(SECOND - 1) == []
    assert ahead.overdue(SECOND) == [early]
    assert list(ahead.waiting) == [late]
    assert ahead.room == 0


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "all", None])
def test_a_wrong_number_is_refused(wrong: object) -> None:
    with pytest.raises(ConfigError, match="prefetch"):
        Pool(memory(), lambda job: None, prefetch=wrong)  # type: ignore[arg-type]


# In a pool, in virtual time


class Shop:
    """A memory queue whose pool fetches ahead. Handlers sleep for as many seconds as the payload says."""

    def __init__(self, workers: int = 2, lease: float = 30.0, prefetch: int = 50) -> None:
        self.clock = VirtualClock()
        self.queue = memory(clock=self.clock, lease=lease)
        self.witness = Witness()
        self.begun: list[str] = []
        self.news = asyncio.Event()
        self.now = self.most = self.most_inflight = 0
        self.pool = Pool(self.queue, self.handler, workers, prefetch=prefetch, listener=self.witness)

    async def handler(self, job: Job) -> None:
        self.begun.append(job.id)
        self.news.set()
        self.now += 1
        self.most = max(self.most, self.now)
        self.most_inflight = max(self.most_inflight, self.queue.stats().inflight)
        await asyncio.sleep(float(job.payload))
        self.now -= 1

    async def until_begun(self, id: str) -> None:
        while id not in self.begun:
            self.news.clear()
            await self.news.wait()
        await asyncio.sleep(0.001)

    def enqueue(self, seconds: float, *ids: str) -> None:
        self.queue.enqueue_many([Job(str(seconds).encode(), id=id) for id in ids])

    def run(self, story: Callable[[], Awaitable[object]]) -> Summary:
        """Until the story is told."""

        async def main() -> Summary:
            run = asyncio.create_task(self.pool.run_async())
            await story()
            self.pool.stop()
            return await run

        return run_virtual(main(), self.clock)


def names(letter: str, count: int) -> list[str]:
    return [f"{letter}{number:04}" for number in range(count)]


def test_short_jobs_are_fetched_ahead_and_begin_in_order_one_for_each_worker() -> None:
    shop = Shop()
    ids = names("a", 300)
    shop.enqueue(0.01, *ids)

    async def story() -> None:
        await asyncio.sleep(10)

    summary = shop.run(story)
    assert shop.begun == ids
    assert shop.most == 2
    assert 10 < shop.most_inflight <= 2 + 20 + 20  # at work, waiting, not settled yet
    assert (summary.acked, summary.released) == (300, 0)


def test_where_nobody_is_there_any_more_what_waits_goes_back_at_once_and_none_is_fetched() -> None:
    shop = Shop()
    shop.enqueue(0.01, *names("a", 300))

    async def story() -> None:
        await asyncio.sleep(0.5)
        assert shop.pool.health().ahead > 0
        shop.pool.resize(0)
        await asyncio.sleep(0.1)
        assert shop.pool.health().running == 0
        assert shop.queue.stats().ready == 300 - len(shop.begun)
        released = shop.witness.verdicts().count("released")
        await asyncio.sleep(60)
        assert shop.witness.verdicts().count("released") == released
        shop.pool.resize(2)
        await asyncio.sleep(10)

    assert shop.run(story).acked == 300
    assert shop.begun == names("a", 300)


def test_none_is_fetched_ahead_where_that_is_turned_off() -> None:
    shop = Shop(prefetch=0)
    shop.enqueue(0.01, *names("a", 300))

    async def story() -> None:
        await asyncio.sleep(10)

    assert shop.run(story).acked == 300
    assert shop.most_inflight == 2


def test_in_memory_none_is_fetched_ahead_unless_asked_for_and_on_a_disk_some_are(tmp_path: Path) -> None:
    with headrace.connect(f"sqlite:///{tmp_path}/jobs.db") as file:
        assert [Pool(queue, print)._options.prefetch for queue in (memory(), file)] == [0, 1000]


def test_while_nothing_can_be_settled_nothing_more_begins() -> None:
    shop = Shop()
    shop.queue, store = faulty(clock=shop.clock)
    shop.pool = Pool(shop.queue, shop.handler, 2, prefetch=50, listener=shop.witness)
    ids = names("a", 300)
    shop.enqueue(0.01, *ids)

    async def story() -> None:
        await asyncio.sleep(0.5)
        store.break_("ack")
        before = len(shop.begun)
        await asyncio.sleep(5)
        assert len(shop.begun) - before <= 4
        store.mend()
        await asyncio.sleep(10)

    assert shop.run(story).acked == 300
    assert shop.begun == ids


def stuck(shop: Shop) -> Callable[[], Awaitable[None]]:
    """Short jobs until many are fetched ahead; then both workers are held up while others wait behind them."""

    async def story() -> None:
        shop.enqueue(0.01, *names("a", 40))
        shop.enqueue(20, "long-1", "long-2")
        shop.enqueue(0.01, *names("b", 10))
        await shop.until_begun("long-2")
        assert shop.pool.health().ahead == 10
        assert shop.pool.health().idle == 0

    return story


def test_what_waits_at_the_shutdown_goes_back_with_its_attempt_at_once() -> None:
    shop = Shop()

    async def story() -> None:
        await stuck(shop)()
        shop.pool.stop()
        await asyncio.sleep(0.01)
        assert shop.queue.stats().ready == 10
        assert [found.attempt for id in names("b", 10) if (found := shop.queue.find(id))] == [0] * 10
        await asyncio.sleep(21)

    summary = shop.run(story)
    assert (summary.acked, summary.released, summary.left) == (42, 10, 0)
    assert shop.begun[-1] == "long-2"


def test_what_waits_for_too_long_goes_back_for_others_and_in_its_old_place() -> None:
    shop = Shop()

    async def story() -> None:
        await stuck(shop)()
        await asyncio.sleep(1.1)
        assert shop.pool.health().ahead == 0
        taken = shop.queue.dequeue_many(100, 0)
        assert [(job.id, job.attempt) for job in taken] == [(id, 1) for id in names("b", 10)]
        shop.queue.ack_many(taken)
        await asyncio.sleep(30)

    assert shop.run(story).acked == 42
    stats = shop.queue.stats()
    assert (stats.acked, stats.expired_leases, stats.size) == (52, 0, 0)


def test_what_waits_and_is_cancelled_or_past_its_deadline_never_begins() -> None:
    shop = Shop(workers=1, lease=300.0)

    async def story() -> None:
        shop.enqueue(0.01, *names("a", 40))
        shop.enqueue(0.6, "long")
        shop.queue.enqueue(Job(b"0", id="late", deadline=shop.clock.now() + timedelta(seconds=0.7)))
        shop.enqueue(0.01, "cancelled", "last")
        await shop.until_begun("long")
        assert shop.pool.health().ahead == 3
        engine = shop.pool._engine
        assert engine is not None
        held = {run.job.id: run for run in engine.heart.held}
        assert shop.queue.cancel("cancelled") is False
        engine.tell(held["cancelled"], headrace.pool.outcome.Stop.ASKED)  # as the next heartbeat would
        await asyncio.sleep(2)

    summary = shop.run(story)
    assert [id for id in shop.begun if not id.startswith("a")] == ["long", "last"]
    assert (summary.cancelled, summary.left) == (1, 0)
    stats = shop.queue.stats()
    assert (stats.cancelled, stats.deadline_missed, stats.size) == (1, 1, 0)


def test_what_waits_when_the_pool_stops_goes_back_in_one_step_and_the_lost_are_told_apart() -> None:
    shop = Shop()
    shop.queue, store = faulty(clock=shop.clock, lease=300.0)
    shop.pool = Pool(shop.queue, shop.handler, 2, prefetch=50, listener=shop.witness)

    async def story() -> None:
        await stuck(shop)()
        assert shop.pool.health().ahead == 10
        engine = shop.pool._engine
        assert engine is not None
        taken = next(run.job for run in engine.heart.held if run.job.id == "b0003")
        shop.queue.bury(taken)
        store.calls.clear()

    summary = shop.run(story)
    assert store.calls["release"] == 1
    assert (summary.released, summary.lost, summary.left) == (9, 1, 0)
    stats = shop.queue.stats()
    assert (stats.ready, stats.dead, stats.ack_too_late) == (9, 1, 1)


def test_jobs_that_nobody_can_resolve_are_given_back_however_many_wait() -> None:
    clock = VirtualClock()
    queue = memory(clock=clock)

    class Picky:
        def resolve(self, job: Job) -> headrace.pool.Call:
            if job.priority:
                return headrace.pool.Call(function=nothing, kind="async", name="nothing")
            raise headrace.pool.Unserved("not known here")

    async def nothing() -> None:
        pass

    queue.enqueue_many([Job(priority=1) for _ in range(100)])
    queue.enqueue_many([Job() for _ in range(3000)])
    pool = Pool(queue, Picky(), 4, prefetch=5000)

    async def main() -> Summary:
        run = asyncio.create_task(pool.run_async())
        await asyncio.sleep(0.5)
        pool.stop()
        return await run

    summary = run_virtual(main(), clock)
    assert (summary.acked, summary.released, summary.left) == (100, 3000, 0)


# By the machine's clock


def test_a_few_workers_need_few_calls_for_many_short_jobs() -> None:
    queue, store = faulty()
    queue.enqueue_many([Job() for _ in range(400)])
    queue.close()

    async def handler(job: Job) -> None:
        pass

    assert Pool(queue, handler, 2, prefetch=200).run().acked == 400
    assert store.calls["take"] <= 40
    assert store.calls["ack"] <= 40


# One fetch while the jobs of the last one begin


class Batches(FaultyStore):
    """Keeps in mind what each fetch brought. It has to be reached, by threads, as one on a disk has to."""

    capabilities = Capabilities(durable=True, processes=False)

    def __init__(self, count: int, **settings: Any) -> None:
        super().__init__(MemoryStore(Settings.make(**settings)))
        self.queue: Queue = faces(self, ExecutorPort("batches", 2))  # type: ignore[arg-type]  # as in faulty()
        self.queue.enqueue_many([Job() for _ in range(count)])
        self.brought: list[set[str]] = []
        self.firsts: dict[str, int] = {}

    def take(self, limit: int) -> list[Job]:
        number = self.calls["take"]
        jobs: list[Job] = self._faulty("take", self._inner.take)(limit)
        if jobs:
            self.brought.append({job.id for job in jobs})
            self.firsts[jobs[0].id] = number + 1
        return jobs

    def under_way(self, job: Job) -> bool:
        """It is the first of those that one fetch brought, and another one has begun since."""
        return self.calls["take"] > self.firsts.get(job.id, self.calls["take"])

    def fetched_since(self, job: Job) -> int:
        """How many fetches came after the one that brought it."""
        return next(number for number, ids in enumerate(reversed(self.brought)) if job.id in ids)


def test_the_next_fetch_is_under_way_while_the_jobs_of_the_last_one_begin() -> None:
    store = Batches(2_000)
    store.queue.close()
    under_way: list[bool] = []
    begun = most = 0

    async def handler(job: Job) -> None:
        nonlocal begun, most
        most = max(most, sum(map(len, store.brought)) - begun)
        begun += 1
        if job.id in store.firsts:
            under_way.append(store.under_way(job))

    assert Pool(store.queue, handler, 10, prefetch=20).run().acked == 2_000
    assert under_way.count(True) > under_way.count(False)
    assert most <= 10 + 20, "for the workers, and what may wait"


@pytest.mark.parametrize("cancelled", [False, True])
def test_what_the_next_fetch_brought_goes_back_when_the_pool_stops(cancelled: bool) -> None:
    store = Batches(2_000)

    async def main() -> None:
        async def handler(job: Job) -> None:
            if store.fetched_since(job) == 1:
                pool.stop()
                if cancelled:
                    run.cancel()

        pool = Pool(store.queue, handler, 10, prefetch=20)
        run = asyncio.create_task(pool.run_async())
        await asyncio.wait([run])

    asyncio.run(main())
    stats = store.queue.stats()
    assert 0 < stats.acked < 2_000
    assert (stats.ready, stats.inflight, stats.expired_leases) == (2_000 - stats.acked, 0, 0)


def test_a_pool_that_is_stopped_and_then_cancelled_still_ends_what_runs_and_gives_the_rest_back() -> None:
    store = Batches(2_000)
    held_up = asyncio.Event()

    async def main() -> None:
        async def handler(job: Job) -> None:
            if store.fetched_since(job) == 1 and not pool_stopped.is_set():
                pool_stopped.set()
                pool.stop()
                await held_up.wait()

        pool_stopped = asyncio.Event()
        pool = Pool(store.queue, handler, 10, prefetch=20)
        run = asyncio.create_task(pool.run_async())
        await pool_stopped.wait()
        await asyncio.sleep(0.1)
        run.cancel()
        await asyncio.wait([run])
        assert run.cancelled()

    asyncio.run(main())
    stats = store.queue.stats()
    assert (stats.ready, stats.inflight) == (2_000 - stats.acked, 0)


def test_a_fetch_that_brings_nothing_leaves_nothing_behind() -> None:
    store = Batches(0)

    async def main() -> None:
        async def handler(job: Job) -> None:
            pass

        pool = Pool(store.queue, handler, 10, prefetch=20)
        run = asyncio.create_task(pool.run_async())
        for burst in range(1, 31):
            store.queue.enqueue_many([Job() for _ in range(burst)])
            await asyncio.to_thread(wait_until, lambda: store.queue.stats().ready == 0)
        engine = pool._engine
        assert engine is not None
        assert engine.heart.coming == []
        pool.stop()
        await run

    asyncio.run(main())


def test_what_a_fetch_brings_when_the_pool_has_stopped_goes_back() -> None:
    store = Batches(2_000)
    held_up = threading.Event()

    async def main() -> Summary:
        async def handler(job: Job) -> None:
            if len(store.brought) >= 5 and not store.hang:
                store.hang["take"] = held_up
                loop = asyncio.get_running_loop()
                loop.call_later(0.1, pool.stop)
                loop.call_later(0.2, held_up.set)

        pool = Pool(store.queue, handler, 10, prefetch=20)
        return await pool.run_async()

    summary = asyncio.run(main())
    held_up.set()  # a fetch that nobody waited for any more, and so was given up, may still be held up
    wait_until(lambda: store.queue.stats().inflight == 0)
    stats = store.queue.stats()
    assert (stats.ready, stats.inflight, stats.acked) == (2_000 - summary.acked, 0, summary.acked)


def test_what_the_next_fetch_brings_while_a_handler_blocks_the_loop_keeps_its_lease() -> None:
    store = Batches(2_000, lease=0.6)
    store.queue.close()
    count = blocked = 0

    async def handler(job: Job) -> None:
        nonlocal count, blocked
        count += 1
        if not blocked and store.under_way(job):
            blocked = count
            wait_until(lambda: store.fetched_since(job) == 1)
            threading.Event().wait(1.5)

    assert Pool(store.queue, handler, 10, prefetch=20).run().acked == 2_000
    assert blocked
    assert count == 2_000


def test_a_next_fetch_that_fails_is_tried_again_and_loses_none() -> None:
    store = Batches(2_000)
    store.queue.close()
    failed: list[int] = []

    async def handler(job: Job) -> None:
        if store.fetched_since(job) == 1 and len(failed) < 3:
            failed.append(1)
            store.break_("take", times=1)

    assert Pool(store.queue, handler, 10, prefetch=20).run().acked == 2_000
    assert len(failed) == 3


@pytest.mark.parametrize("kind", ["async", "thread", "process"])
def test_the_store_answers_for_many_jobs_at_once(kind: str, tmp_path: Path) -> None:
    queue = headrace.connect(f"sqlite:///{tmp_path}/jobs.db")
    queue.enqueue_many([Job(b'["return", "%s"]' % str(tmp_path / "ledger").encode()) for _ in range(60)])
    with running(queue, kind, workers=2) as run:
        wait_until(lambda: queue.stats().acked == 60)
        run.pool.stop()
        assert run.join().acked == 60
    assert queue.stats().inflight == 0
    queue.close()


def test_a_handler_that_blocks_the_loop_costs_none_that_waits_its_lease() -> None:
    queue, begun = memory(lease=0.6), threading.Event()
    count = 0

    async def handler(job: Job) -> None:
        nonlocal count
        count += 1
        if job.payload:
            wait_until(lambda: queue.stats().inflight > 1)
            begun.set()
            threading.Event().wait(1.5)

    witness = Witness()
    queue.enqueue_many([Job(b"block" if number == 40 else b"") for number in range(60)])
    pool = Pool(queue, handler, 1, prefetch=50, listener=witness)
    with started(pool, witness):
        assert begun.wait(10)
        witness.until_finished(60)
        wait_until(lambda: queue.stats().acked == 60)
    assert count == 60
    assert queue.stats().expired_leases == 0


WORKER = """
import os, sys
import headrace

queue = headrace.connect(sys.argv[1], lease=0.5)

async def handler(job):
    with open(sys.argv[2], "a") as ledger:
        ledger.write(f"{job.id} {job.attempt}\\n")
    if job.id == "poison":
        os._exit(1)

queue.close()
headrace.Pool(queue, handler, 4).run()
"""


def test_a_job_that_kills_its_worker_takes_an_attempt_from_those_that_wait_but_once(tmp_path: Path) -> None:
    url, ledger = f"sqlite:///{tmp_path}/jobs.db", tmp_path / "ledger"
    queue = headrace.connect(url, lease=0.5, max_attempts=5)
    queue.enqueue_many([Job() for _ in range(100)])
    queue.enqueue(Job(id="poison", max_attempts=3))
    queue.enqueue_many([Job() for _ in range(200)])
    deaths = 0
    while deaths < 10 and subprocess.run([sys.executable, "-c", WORKER, url, str(ledger)], check=False).returncode:
        deaths += 1
        wait_until(lambda: queue.stats().inflight == 0)  # their leases are over
    assert deaths == 3
    assert [(dead.id, dead.last_error) for dead in queue.dead()] == [("poison", EXPIRED)]
    assert queue.stats().acked == 300
    # Beside those that were fetched together with it for the four workers, none was leased more than twice.
    thrice = {line.split()[0] for line in ledger.read_text().splitlines() if int(line.split()[1]) > 2}
    assert len(thrice) <= 4
