"""Tasks from enqueue to done: real queues, a real pool."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.app import App
from headrace.job import Job
from headrace.pool.call import Call
from headrace.pool.context import Context
from headrace.pool.pool import Pool
from headrace.queue import Queue
from headrace.testing.clock import VirtualClock, wait_until

module_app = App("memory://")


@module_app.task(process=True)
def write(path: str, text: str) -> None:
    Path(path).write_text(text)


@module_app.task(process=True)
async def write_attempt(context: Context, path: str) -> None:
    Path(path).write_text(f"attempt {context.job.attempt}")  # noqa: ASYNC240  # alone in its process


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'jobs.db'}"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def app(url: str, clock: VirtualClock) -> Iterator[App]:
    with App(url, clock=clock) as app:
        yield app


@contextmanager
def working(pool: Pool) -> Iterator[None]:
    """A pool that runs in a thread of its own, and has ended cleanly afterwards."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            pool.run()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        pool.stop()
        thread.join(30.0)
    assert not thread.is_alive()
    assert errors == []


def at_rest(queue: Queue) -> bool:
    """Whether everything is done, dead, or waits for its time."""
    stats = queue.stats()
    return stats.ready + stats.inflight == 0


class Counting:
    """An app that counts how often it was asked."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.asked = 0

    def resolve(self, job: Job) -> Call:
        self.asked += 1
        return self._app.resolve(job)


def test_async_and_sync_tasks_run_with_their_arguments_and_context(app: App, clock: VirtualClock) -> None:
    seen: list[tuple[Any, ...]] = []

    @app.task
    async def waits(context: Context, a: int) -> None:
        await asyncio.sleep(0)
        seen.append(("async", a, context.job.attempt))

    @app.task
    def blocks(a: int, *, context: Context | None = None) -> None:
        assert context is not None
        seen.append(("thread", a, context.job.attempt))

    waits.enqueue(1)
    blocks.enqueue(2)
    with working(app.pool(workers=2)):
        wait_until(lambda: app.queue().stats().acked == 2)
    assert sorted(seen) == [("async", 1, 1), ("thread", 2, 1)]


def test_process_tasks_run_in_a_process(tmp_path: Path) -> None:
    files = tmp_path / "plain", tmp_path / "context"
    with module_app as app:
        write.enqueue(str(files[0]), text="done")
        write_attempt.enqueue(str(files[1]))
        queue = app.queue()
        with working(app.pool(workers=1)):
            wait_until(lambda: queue.stats().acked == 2, 60.0)
        assert [each.read_text() for each in files] == ["done", "attempt 1"]


@pytest.mark.parametrize(
    "returned", [object, lambda: {1}, lambda: (each for each in "a"), lambda: b"\xff", lambda: "\0"]
)
def test_what_a_task_returns_is_ignored(app: App, clock: VirtualClock, returned: Callable[[], Any]) -> None:
    @app.task
    async def returns() -> Any:
        return returned()

    returns.enqueue()
    with working(app.pool()):
        wait_until(lambda: at_rest(app.queue()))
    stats = app.queue().stats()
    assert (stats.acked, stats.retried, stats.dead) == (1, 0, 0)


@pytest.mark.parametrize("payload", [b"\xff", b'{"task":"greet","v":1,"args":{"name":5}}'])
def test_payload_that_nobody_can_read_is_tried_and_then_dead_with_the_reason(
    app: App, clock: VirtualClock, payload: bytes
) -> None:
    @app.task(name="greet")
    async def greet(name: str) -> None: ...

    app.queue().enqueue(Job(payload=payload, id="odd", max_attempts=2))
    greet.enqueue("Ada")
    with working(app.pool(retry="constant")):
        for _ in range(2):
            wait_until(lambda: at_rest(app.queue()))
            clock.advance(1.0)
        wait_until(lambda: at_rest(app.queue()))
    (dead,) = app.queue().dead()
    assert (dead.id, dead.attempt) == ("odd", 2)
    assert dead.last_error is not None
    assert "InvalidJob" in dead.last_error
    assert app.queue().stats().acked == 1


@pytest.mark.parametrize("max_attempts", [1, 5])
def test_task_that_only_the_new_release_knows_waits_for_it(
    app: App, url: str, clock: VirtualClock, max_attempts: int
) -> None:
    done: list[tuple[str, int]] = []

    def add_known(to: App) -> Any:
        @to.task(name="known")
        async def known(context: Context) -> None:
            done.append(("known", context.job.attempt))

        return known

    old = App("memory://")
    known = add_known(old)
    add_known(app)

    @app.task(name="future", max_attempts=max_attempts)
    async def future(context: Context, a: int) -> None:
        done.append(("future", context.job.attempt))

    queue: Queue = app.queue()
    for number in range(3):
        future.enqueue(number)
        queue.enqueue(known.job())
    counting = Counting(old)
    with working(Pool(queue, counting)):
        for _ in range(20):
            wait_until(lambda: at_rest(queue))
            clock.advance(0.5)
        wait_until(lambda: at_rest(queue))
    stats = queue.stats()
    assert done == [("known", 1)] * 3
    assert (stats.ready + stats.delayed, stats.dead, stats.retried) == (3, 0, 0)
    assert counting.asked <= 3 + 3 * 11  # about once a second for each that is not ours

    with working(app.pool()):
        clock.advance(30.0)
        wait_until(lambda: queue.stats().acked == 6)
    assert done[3:] == [("future", 1)] * 3
    assert queue.stats().unaccounted == 0
