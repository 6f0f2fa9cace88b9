"""Handlers made of handlers: one job through several of them, and on to another queue."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pool_kit
import pytest
from faulty import faulty
from pool_kit import Witness, started

import headrace
from headrace import ConfigError, Discard, InvalidJob, Job, Queue, Snooze
from headrace.errors import Unavailable
from headrace.pool import Pool, Summary, async_chain, chain, current, transit
from headrace.pool.outcome import Forward, Raised
from headrace.pool.retry import retries
from headrace.pool.settle import Onward, decide
from headrace.testing.clock import wait_until

LIMIT = 20.0


@pytest.fixture(params=["memory", "sqlite"])
def open_queue(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Queue]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'jobs.db'}"

    def open_one(name: str = "default", **settings: Any) -> Queue:
        queue = headrace.connect(url, queue=name, **settings)
        request.addfinalizer(queue.close)
        return queue

    return open_one


class Steps:
    """Handlers that say that they were there."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def sync(self, name: str, error: BaseException | None = None) -> Callable[[Job], None]:
        def handle(job: Job) -> None:
            assert current().job.id == job.id
            self.seen.append(name)
            if error is not None:
                raise error

        return handle

    def awaited(self, name: str, error: BaseException | None = None) -> Callable[[Job], Any]:
        async def handle(job: Job) -> None:
            await asyncio.sleep(0)
            assert current().job.id == job.id
            self.seen.append(name)
            if error is not None:
                raise error

        return handle


@pytest.fixture
def steps() -> Steps:
    return Steps()


def drain(queue: Queue, handler: Any, jobs: int = 1, **settings: Any) -> Summary:
    """Run the handler for so many jobs, to the end."""
    queue.enqueue_many([Job(b"x", id=f"job-{n}") for n in range(jobs)])
    queue.close()
    return Pool(queue, handler, **settings).run()


# -- chain ------------------------------------------------------------------------------------------------


def test_a_chain_takes_sync_and_async_members_in_order(steps: Steps) -> None:
    handler = chain(steps.sync("a"), steps.awaited("b"), steps.sync("c"), steps.awaited("d"))
    assert drain(pool_kit.memory(), handler).acked == 1
    assert steps.seen == ["a", "b", "c", "d"]


def test_a_sync_member_does_not_block_the_event_loop() -> None:
    loops: list[threading.Thread] = []

    async def on_the_loop(job: Job) -> None:
        loops.append(threading.current_thread())

    def beside_it(job: Job) -> None:
        assert threading.current_thread() is not loops[0]

    assert drain(pool_kit.memory(), chain(on_the_loop, beside_it)).acked == 1


@pytest.mark.parametrize("kind", ["sync", "awaited"])
def test_a_chain_stops_at_the_first_failure(steps: Steps, kind: str) -> None:
    queue = pool_kit.memory(max_attempts=1)
    failing = getattr(steps, kind)("b", ValueError("no"))
    assert drain(queue, chain(steps.sync("a"), failing, steps.sync("c"))).nacked == 1
    assert steps.seen == ["a", "b"]
    assert queue.dead()[0].last_error == "ValueError: no"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()])
@pytest.mark.parametrize("kind", ["sync", "awaited"])
@pytest.mark.parametrize("make", [chain, async_chain])
def test_what_no_handler_should_raise_fails_the_job_alone(
    steps: Steps, make: Any, kind: str, error: BaseException
) -> None:
    queue = pool_kit.memory(max_attempts=1)
    bad = getattr(steps, kind)("bad", error)

    def handle(job: Job) -> Any:
        return bad(job) if job.id == "job-0" else None

    summary = drain(queue, make(handle, steps.sync("good")), jobs=6)
    assert (summary.acked, summary.nacked) == (5, 1)


def test_an_outcome_is_how_the_job_ends(steps: Steps) -> None:
    queue = pool_kit.memory()
    assert drain(queue, chain(steps.sync("a", Discard("bad address")), steps.sync("b"))).buried == 1
    assert queue.dead()[0].last_error == "bad address"
    assert drain(pool_kit.memory(), chain(steps.awaited("c", Snooze(60)), steps.sync("d"))).released == 1
    assert steps.seen == ["a", "c"]


def test_a_retry_begins_with_the_first_member_again(steps: Steps) -> None:
    tries: list[int] = []

    async def second_time_lucky(job: Job) -> None:
        tries.append(job.attempt)
        if job.attempt == 1:
            raise ValueError("not yet")

    assert drain(pool_kit.memory(), chain(steps.sync("a"), second_time_lucky), retry=lambda attempt: 0.0).acked == 1
    assert (steps.seen, tries) == (["a", "a"], [1, 2])


class WithCall:
    async def __call__(self, job: Job) -> None:
        LEDGER.append("object")


LEDGER: list[str] = []


async def written(word: str, job: Job) -> None:
    LEDGER.append(word)


def test_every_flavour_of_handler_runs_its_body() -> None:
    LEDGER.clear()
    flavours = [
        WithCall(),
        functools.partial(written, "partial"),
        lambda job: written("lambda", job),
        functools.wraps(written)(lambda job: written("wrapped", job)),
        chain(functools.partial(written, "nested")),
    ]
    assert drain(pool_kit.memory(), chain(*flavours)).acked == 1
    assert LEDGER == ["object", "partial", "lambda", "wrapped", "nested"]
    assert drain(pool_kit.memory(), async_chain(*flavours)).acked == 1
    assert sorted(LEDGER[5:]) == ["lambda", "nested", "object", "partial", "wrapped"]


def generator(job: Job) -> Any:
    yield job


@pytest.mark.parametrize("make", [chain, async_chain])
@pytest.mark.parametrize("bad", [generator, Steps, 3, None])
def test_what_cannot_be_a_handler_is_refused_when_the_chain_is_made(make: Any, bad: Any) -> None:
    with pytest.raises(TypeError, match="handler"):
        make(bad)


@pytest.mark.parametrize("make", [chain, async_chain])
def test_a_chain_without_members_is_refused(make: Any) -> None:
    with pytest.raises(ConfigError, match="no members"):
        make()


def test_a_member_that_returns_a_generator_has_not_run() -> None:
    queue = pool_kit.memory(max_attempts=1)
    assert drain(queue, chain(lambda job: generator(job))).nacked == 1
    assert "generator" in str(queue.dead()[0].last_error)


def test_a_chain_that_overruns_stops_before_its_next_member(steps: Steps) -> None:
    queue = pool_kit.memory(max_attempts=1)

    async def waits(job: Job) -> None:
        await asyncio.Event().wait()

    def waits_sync(job: Job) -> None:
        assert current().wait_cancelled(LIMIT)

    for slow in (waits, waits_sync):
        queue = pool_kit.memory(max_attempts=1)
        assert drain(queue, chain(slow, steps.sync("next")), timeout=0.05).nacked == 1
        assert queue.dead()[0].last_error == "timed out after 0.05 s"
    assert steps.seen == []


def test_a_hung_sync_member_is_written_off_and_counted_as_such() -> None:
    queue = pool_kit.memory(max_attempts=1)
    go = threading.Event()

    def hangs(job: Job) -> None:
        go.wait(LIMIT)

    witness = Witness()
    pool = Pool(queue, chain(hangs), timeout=0.05, listener=witness)
    queue.enqueue(Job())
    with started(pool, witness):
        witness.until_finished(1)
        assert pool.health().zombies == 1
        go.set()
        wait_until(lambda: pool.health().zombies == 0, LIMIT)
        pool.stop()


# -- async_chain ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["async", "thread"])
def test_members_of_an_async_chain_run_at_the_same_time(kind: str) -> None:
    meeting = threading.Barrier(3)

    def meet(job: Job) -> None:
        meeting.wait(LIMIT)

    arrived: list[int] = []
    all_here = asyncio.Event()

    async def meet_async(job: Job) -> None:
        arrived.append(1)
        if len(arrived) == 3:
            all_here.set()
        await all_here.wait()

    members = [meet, meet, meet] if kind == "thread" else [meet_async, meet_async, meet_async]
    assert drain(pool_kit.memory(), async_chain(*members)).acked == 1


def test_all_members_finish_and_the_first_failure_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    queue = pool_kit.memory(max_attempts=1)
    failed = asyncio.Event()
    finished: list[str] = []

    async def last(job: Job) -> None:
        await failed.wait()
        await asyncio.sleep(0)
        finished.append("last")
        raise ValueError("the second")

    async def first(job: Job) -> None:
        failed.set()
        raise ValueError("the first")

    assert drain(queue, async_chain(last, first)).nacked == 1
    assert queue.dead()[0].last_error == "ValueError: the first"
    assert finished == ["last"]
    assert "the second" in caplog.text


def test_an_async_chain_that_overruns_cancels_all_its_members() -> None:
    told: list[str] = []

    async def waits(job: Job) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append("async")
            raise

    def waits_sync(job: Job) -> None:
        assert current().wait_cancelled(LIMIT)
        told.append("sync")

    queue = pool_kit.memory(max_attempts=1)
    assert drain(queue, async_chain(waits, waits_sync), timeout=0.05).nacked == 1
    assert sorted(told) == ["async", "sync"]


# -- transit ----------------------------------------------------------------------------------------------


def test_a_transit_moves_jobs_to_another_queue(open_queue: Callable[..., Queue]) -> None:
    here, there = open_queue("here"), open_queue("there")
    here.enqueue(Job(b"important", id="a", priority=5))
    assert drain(here, transit(there), jobs=20).acked == 21
    stats = there.stats()
    assert (stats.ready, stats.unaccounted, here.stats().acked, here.stats().unaccounted) == (21, 0, 21, 0)
    first = there.dequeue(0)
    assert first is not None
    assert (first.id, first.payload, first.priority) == ("a", b"important", 5)


def test_a_chain_may_end_in_a_transit(open_queue: Callable[..., Queue], steps: Steps) -> None:
    here, there = open_queue("here"), open_queue("there")
    assert drain(here, chain(steps.sync("a"), chain(steps.awaited("b"), transit(there.as_async)))).acked == 1
    assert steps.seen == ["a", "b"]
    assert there.stats().ready == 1


def test_nothing_comes_behind_a_transit(steps: Steps) -> None:
    to = transit(pool_kit.memory(queue="there"))
    for ends_early in (to, chain(to), async_chain(to)):
        with pytest.raises(ConfigError, match="must be the last"):
            chain(ends_early, steps.sync("a"))
    with pytest.raises(ConfigError, match="one queue only"):
        async_chain(to, chain(to))


def test_a_transit_beside_others_waits_for_their_success(steps: Steps) -> None:
    there = pool_kit.memory(queue="there")
    here = pool_kit.memory(max_attempts=1)
    assert drain(here, async_chain(transit(there), steps.awaited("a", ValueError("no")))).nacked == 1
    assert there.stats().enqueued == 0
    assert drain(pool_kit.memory(), async_chain(transit(there), steps.awaited("b"))).acked == 1
    assert there.stats().enqueued == 1


def test_between_stores_a_transit_enqueues_and_then_acks(tmp_path: Path) -> None:
    there = pool_kit.memory(queue="there")
    with headrace.connect(f"sqlite:///{tmp_path / 'jobs.db'}") as here:
        assert drain(here, transit(there), jobs=3).acked == 3
        assert here.stats().unaccounted == 0
    assert there.stats().ready == 3


def test_between_stores_an_id_that_is_there_already_is_done() -> None:
    """So a worker that died after it had enqueued, and before it had acked, has doubled nothing."""
    here, store = faulty(lease=0.2)
    with headrace.connect("memory://", queue="there") as there:
        store.break_("ack", error=Unavailable("away"), times=2)
        assert drain(here, transit(there)).acked == 1
        assert there.stats().enqueued == 1


@pytest.mark.parametrize("overflow", ["reject", "block"])
@pytest.mark.parametrize("same_store", [True, False])
def test_a_full_target_costs_a_job_no_attempt(same_store: bool, overflow: str, tmp_path: Path) -> None:
    here = pool_kit.memory(max_attempts=1)
    url = "memory://" if same_store else f"sqlite:///{tmp_path / 'there.db'}"
    with headrace.connect(url, queue="there", capacity=1, overflow=overflow) as there:
        there.enqueue(Job(id="first"))
        here.enqueue(Job(id="a"))
        witness = Witness()
        pool = Pool(here, transit(there), listener=witness)
        with started(pool, witness) as run:
            witness.until_finished(1)
            assert witness.verdicts() == ["released"]
            first = there.dequeue(0)
            assert first is not None
            there.ack(first)
            witness.until_finished(2)
            pool.stop()
            run.join()
        assert witness.verdicts() == ["released", "acked"]
        assert there.stats().ready == 1


def test_a_target_that_refuses_the_job_fails_it_with_that_reason() -> None:
    here, there = pool_kit.memory(max_attempts=1), pool_kit.memory(queue="there", max_payload=0)
    assert drain(here, transit(there)).nacked == 1
    assert "max_payload" in str(here.dead()[0].last_error)
    assert there.stats().enqueued == 0


def test_a_closed_target_fails_the_job_and_not_the_pool() -> None:
    here, there = pool_kit.memory(max_attempts=1), pool_kit.memory(queue="there")
    there.close()
    assert drain(here, transit(there)).nacked == 1
    assert "closed" in str(here.dead()[0].last_error)


def test_a_transit_to_its_own_queue_fails_the_job_and_loses_nothing() -> None:
    here = pool_kit.memory(max_attempts=1)
    assert drain(here, transit(here)).nacked == 1
    assert (here.stats().dead, here.stats().unaccounted) == (1, 0)


def test_a_target_that_does_not_answer_is_waited_for() -> None:
    there, store = faulty(queue="there")
    store.break_("put", times=2)
    here = pool_kit.memory(max_attempts=1)
    assert drain(here, transit(there)).acked == 1
    assert there.stats().ready == 1


def test_a_store_that_does_not_answer_is_waited_for_and_nothing_moves_twice() -> None:
    here, store = faulty(max_attempts=1)
    store.break_("forward", times=2)
    with headrace.connect("memory://", queue="there") as there:
        assert drain(here, transit(there)).acked == 1
        assert there.stats().enqueued == 1


def test_a_transit_takes_queues_only() -> None:
    with pytest.raises(TypeError, match="queue"):
        transit("archive")
    with pytest.raises(TypeError, match="queue"):
        Forward(InvalidJob("a", "b"))


def test_a_handler_may_forward_by_itself(open_queue: Callable[..., Queue]) -> None:
    here, there = open_queue("here"), open_queue("there")

    def handle(job: Job) -> None:
        raise Forward(there)

    assert drain(here, handle).acked == 1
    assert there.stats().ready == 1


def test_a_composed_handler_shows_what_it_is_made_of() -> None:
    shown = chain(written, async_chain(generator_free, transit(pool_kit.memory(queue="archive"))))
    assert repr(shown) == "chain(written, async_chain(generator_free, transit(archive)))"


async def generator_free(job: Job) -> None: ...


def test_a_lost_lease_moves_nothing() -> None:
    here, there = pool_kit.memory(lease=0.5), pool_kit.memory(queue="there")
    witness = Witness()

    async def loses_it(job: Job) -> None:
        here.nack(job, 60.0)  # behind the pool's back: the lease is over
        raise Forward(there)

    here.enqueue(Job())
    pool = Pool(here, loses_it, listener=witness)
    with started(pool, witness):
        witness.until_finished(1)
        pool.stop()
    assert witness.verdicts() == ["lost"]
    assert there.stats().enqueued == 0


def test_how_a_forwarded_job_ends_is_decided_like_any_other() -> None:
    there = pool_kit.memory(queue="there")
    decided = decide(Job(), Raised(Forward(there)), retries(lambda attempt: 7.0), now=0)
    assert decided == Onward(there, 7.0)
