"""Async handlers share tasks only where none of them can tell."""

from __future__ import annotations

import asyncio
import contextvars
import weakref
from collections.abc import Callable, Generator
from typing import Any

import pytest
from pool_kit import Witness, memory

from headrace.clock import FAR, SystemClock
from headrace.job import Job
from headrace.pool import Call, Context, Pool, Resolver, current
from headrace.pool.outcome import RETURNED, CancelAsked, Ended, Interrupted, Raised, Stop
from headrace.pool.run import Run
from headrace.pool.runners import LoopRunner

Handler = Callable[[Job], Any]
seen: contextvars.ContextVar[str] = contextvars.ContextVar("seen", default="nothing")


def work(handler: Handler | Resolver, count: int = 8, **settings: Any) -> list[str]:
    """Run so many jobs, fetched at once; how they ended. Without anything left over that asyncio would log."""
    complaints: list[dict[str, Any]] = []

    async def main() -> list[str]:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        queue, witness = memory(max_attempts=1), Witness()
        queue.enqueue_many([Job(id=str(number)) for number in range(count)])
        queue.close()
        await Pool(queue, handler, workers=count, listener=witness, **settings).run_async()
        return witness.verdicts()

    verdicts = asyncio.run(main(), debug=True)
    assert complaints == []
    return verdicts


def test_handlers_that_never_wait_need_few_tasks() -> None:
    names: list[str] = []

    async def handler(given: Job) -> None:
        names.append(name())

    assert work(handler) == ["acked"] * 8
    assert len(set(names)) == 1


def name() -> str:
    task = asyncio.current_task()
    assert task is not None
    return task.get_name()


def test_a_handler_that_waits_keeps_its_task_for_itself() -> None:
    names: dict[str, list[str]] = {}

    async def handler(given: Job) -> None:
        for _ in range(3):
            names.setdefault(given.id, []).append(name())
            await asyncio.sleep(0.01)

    assert work(handler) == ["acked"] * 8
    assert all(len(set(own)) == 1 for own in names.values())
    assert len({own[0] for own in names.values()}) == 8


def test_a_task_that_was_taken_note_of_serves_nobody_else() -> None:
    strong: list[asyncio.Task[Any] | None] = []
    weak: weakref.WeakKeyDictionary[asyncio.Task[Any], str] = weakref.WeakKeyDictionary()
    clashes: list[str] = []

    async def keeps(given: Job) -> None:
        strong.append(asyncio.current_task())

    async def files(given: Job) -> None:
        task = asyncio.current_task()
        assert task is not None
        if task in weak:
            clashes.append(given.id)
        weak[task] = given.id

    assert work(keeps) == ["acked"] * 8
    assert len(set(strong)) == 8
    assert work(files) == ["acked"] * 8
    assert clashes == []


def test_every_handler_has_context_variables_of_its_own_at_every_step() -> None:
    found: list[tuple[str, str, str, str]] = []

    async def handler(given: Job) -> None:
        first = seen.get()
        seen.set(given.id)
        if int(given.id) % 2:
            await asyncio.sleep(0.01)
        told = await asyncio.create_task(child())
        found.append((first, seen.get(), told, current().job.id))

    async def child() -> str:
        return seen.get()

    assert work(handler) == ["acked"] * 8
    assert sorted(found) == [("nothing", str(number), str(number), str(number)) for number in range(8)]


def test_a_handler_that_cancels_itself_at_the_end_harms_nobody() -> None:
    async def handler(given: Job) -> None:
        if given.id == "0":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        elif given.id == "1":
            await asyncio.sleep(0.01)

    assert work(handler) == ["acked"] * 8


def test_timeouts_and_task_groups_work_before_and_after_the_first_wait() -> None:
    late: list[str] = []

    async def handler(given: Job) -> None:
        if int(given.id) % 2:
            await asyncio.sleep(0)
        try:
            async with asyncio.timeout(0.02):
                await asyncio.Event().wait()
        except TimeoutError:
            late.append(given.id)
        with pytest.raises(ExceptionGroup):
            await grouped()
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    async def grouped() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            await asyncio.Event().wait()

    async def fail() -> None:
        raise ValueError

    assert work(handler) == ["acked"] * 8
    assert sorted(late) == [str(number) for number in range(8)]


def test_what_is_thrown_in_arrives_where_the_handler_waits() -> None:
    async def handler(given: Job) -> None:
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_exception, KeyError(given.id))
        with pytest.raises(KeyError):
            await future
        with pytest.raises(RuntimeError, match="await"):
            await asyncio.current_task()  # type: ignore[misc]  # a task cannot wait for itself

    assert work(handler) == ["acked"] * 8


class Odd:
    """Awaitable, but no coroutine."""

    def __await__(self) -> Generator[Any, None, None]:
        yield from asyncio.sleep(0.01).__await__()


class Callee:
    async def __call__(self, given: Job) -> None:
        await Odd()


def test_any_awaitable_will_do() -> None:
    class Always:
        def resolve(self, given: Job) -> Call:
            return Call(function=Odd, kind="async", name="odd")

    assert work(Callee()) == ["acked"] * 8
    assert work(Always()) == ["acked"] * 8


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, StopIteration])
def test_no_exception_leaves_a_shared_task(error: type[BaseException], waits: bool) -> None:
    async def handler(given: Job) -> None:
        if waits:
            await asyncio.sleep(0)
        if int(given.id) % 2:
            raise error

    assert sorted(work(handler)) == ["acked"] * 4 + ["nacked"] * 4


# The runner by itself


def begun(count: int, ended: list[Ended], handler: Handler) -> tuple[LoopRunner, list[Run]]:
    loop, clock = asyncio.get_running_loop(), SystemClock()
    runner = LoopRunner(loop, clock)

    def note(run: Run) -> None:
        assert run.how is not None
        ended.append(run.how)

    runs = [Run(Context(Job(), clock), clock, clock.steady(), FAR, note) for _ in range(count)]
    for run in runs:
        run.call = Call(function=handler, args=(run.job,), kind="async", name="handler")
        run.runner = runner
        runner.start(run)
    return runner, runs


def test_what_is_stopped_before_its_first_step_never_begins() -> None:
    called: list[Job] = []
    ended: list[Ended] = []

    async def handler(given: Job) -> None:
        called.append(given)

    async def main() -> None:
        _, runs = begun(3, ended, handler)
        runs[0].stop(Stop.DRAIN)
        runs[2].stop(Stop.ASKED)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert ended == [Interrupted(), CancelAsked(), RETURNED]
    assert len(called) == 1


def test_when_somebody_cancels_every_task_the_jobs_fail_and_the_next_ones_run() -> None:
    ended: list[Ended] = []

    async def handler(given: Job) -> None:
        pass

    async def main() -> None:
        runner, runs = begun(3, ended, handler)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [type(how) for how in ended] == [Raised] * 3
        again = Run(
            Context(Job(), SystemClock()), SystemClock(), 0, FAR, lambda run: ended.append(run.how or CancelAsked())
        )
        again.call = runs[0].call
        runner.start(again)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert ended[3:] == [RETURNED]


def test_no_task_is_remembered_when_all_have_ended() -> None:
    async def main() -> None:
        ended: list[Ended] = []

        async def handler(given: Job) -> None:
            await asyncio.sleep(0)

        runner, _ = begun(20, ended, handler)
        await asyncio.sleep(0.01)
        assert len(ended) == 20
        assert runner._tasks == {}

    asyncio.run(main())


def test_what_a_thread_returned_to_be_awaited_has_no_more_time_for_that() -> None:
    ended: list[Ended] = []

    async def main() -> None:
        loop, clock = asyncio.get_running_loop(), SystemClock()
        run = Run(Context(Job(), clock), clock, clock.steady(), FAR, lambda run: ended.append(run.how or CancelAsked()))
        run.timeout = 30.0
        run.arm(loop)
        alarm = run.alarm

        async def rest() -> None:
            assert run.alarm is alarm

        LoopRunner(loop, clock).adopt(run, rest())
        await asyncio.sleep(0)

    asyncio.run(main())
    assert ended == [RETURNED]


def test_handlers_that_wait_do_not_begin_one_after_the_other() -> None:
    begun_: list[Job] = []
    ended: list[Ended] = []

    async def handler(given: Job) -> None:
        begun_.append(given)
        await asyncio.sleep(0)

    async def main() -> None:
        begun(50, ended, handler)
        await asyncio.sleep(0)
        assert len(begun_) == 1  # it is not known yet that they wait
        await asyncio.sleep(0)
        assert len(begun_) == 50
        await asyncio.sleep(0.01)

    asyncio.run(main())
    assert ended == [RETURNED] * 50
