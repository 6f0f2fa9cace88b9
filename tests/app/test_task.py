"""A task is still the function, and its settings and its shape are checked when it is made."""

from __future__ import annotations

import asyncio
import functools
import inspect
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headrace.app import App
from headrace.errors import ConfigError, DuplicateJob, InvalidJob, QueueFull
from headrace.job import Job
from headrace.pool.call import Call
from headrace.pool.context import Context, enter
from headrace.pool.retry import Linear
from headrace.tasks.task import Handle, Task
from headrace.testing.clock import START, VirtualClock, run_virtual

if TYPE_CHECKING:
    from decimal import Decimal


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def app(clock: VirtualClock) -> Iterator[App]:
    with App("memory://", clock=clock) as app:
        yield app


def take(app: App, queue: str = "default") -> Job:
    job = app.queue(queue).dequeue(timeout=0)
    assert job is not None
    return job


def call(app: App, queue: str = "default") -> Call:
    return app.resolve(take(app, queue))


def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b


async def add_later(a: int, b: int = 1) -> int:
    return a + b


# The function


def test_task_is_called_like_its_function(app: App) -> None:
    task = app.task(add)
    assert (task(2), task(2, b=3), task.__name__, task.__doc__) == (3, 5, "add", "Adds.")
    assert inspect.signature(task) == inspect.signature(add)


def test_attributes_of_the_function_do_not_hide_those_of_the_task(app: App) -> None:
    def f() -> None: ...

    f.enqueue = f.retry = f.settings = "mine"  # type: ignore[attr-defined]  # as some decorators do
    task = app.task(f)
    task.enqueue()
    assert (call(app).retry, task.settings.queue) == (None, "default")


async def test_async_task_is_awaited_like_its_function(app: App) -> None:
    assert await app.task(add_later)(2, b=3) == 5


def test_task_is_named_after_module_and_function(app: App) -> None:
    assert app.task(add).name == f"{__name__}:add"
    assert app.task(name="other")(add).name == "other"
    assert list(app.tasks) == [f"{__name__}:add", "other"]


def test_name_that_is_taken_is_refused(app: App) -> None:
    app.task(add)
    with pytest.raises(ConfigError, match="there is a task 'test_task:add' already"):
        app.task(add)


@pytest.mark.parametrize("arguments", [["{file}"], ["-m", "shop_jobs"], ["-m", "shop_package.jobs"]])
def test_task_of_the_running_script_is_named_as_a_worker_imports_it(tmp_path: Path, arguments: list[str]) -> None:
    source = "from headrace.app import App\napp = App('memory://')\n@app.task\ndef f(): ...\nprint(*app.tasks)\n"
    (tmp_path / "shop_package").mkdir()
    for name in ("shop_jobs.py", "shop_package/jobs.py"):
        (tmp_path / name).write_text(source)
    command = [sys.executable, *(each.format(file=tmp_path / "shop_jobs.py") for each in arguments)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    module = "shop_package.jobs" if "package" in arguments[-1] else "shop_jobs"
    assert done.stdout == f"{module}:f\n"


def test_task_of_a_prompt_stays_in_main() -> None:
    source = "from headrace.app import App\ndef f(): ...\nprint(App().task(f).name)"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "__main__:f\n"


# What cannot be a task


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


def variadic(*args: int) -> None: ...
def keywords(**kwargs: int) -> None: ...
def two_contexts(a: Context, b: Context) -> None: ...


class Shop:
    def method(self, a: int) -> int:
        return a

    def unbound(cls, a: int) -> None: ...  # a classmethod whose decorator was forgotten

    @classmethod
    def of_class(cls, a: int) -> None: ...

    @staticmethod
    def static(a: int) -> int:
        return a + 1

    def __call__(self, a: int) -> int:
        return a + 2


class AsyncShop:
    async def __call__(self, a: int) -> int:
        return a + 3


@pytest.mark.parametrize(
    "function",
    [
        generator, async_generator, functools.partial(generator), variadic, keywords, two_contexts, Shop,
        Shop.method, Shop.unbound, vars(Shop)["of_class"], property(add),
    ],
)  # fmt: skip
def test_what_cannot_run_from_a_queue_is_refused_when_the_task_is_made(app: App, function: Any) -> None:
    with pytest.raises(TypeError, match=r"."):
        app.task(name="x")(function)
    assert not app.tasks


def test_method_in_a_class_body_is_refused_and_told_why(app: App) -> None:
    with pytest.raises(TypeError, match="nobody gives a method its self"):

        class _Mailer:
            @app.task
            def send(self, to: str) -> None: ...


def test_self_is_a_fine_name_outside_a_class(app: App) -> None:
    def f(self: int) -> None: ...

    app.task(f).enqueue(self=1)
    assert call(app).kwargs == {"self": 1}


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@pytest.mark.parametrize(
    ("function", "kind", "result"),
    [
        (add, "thread", 2),
        (add_later, "async", 2),
        (functools.partial(add, b=5), "thread", 6),
        (functools.partial(add_later, b=5), "async", 6),
        (wrapped(add), "thread", 2),
        (wrapped(add_later), "thread", 2),  # the pool awaits what a thread's call returns
        (lambda a: add_later(a), "thread", 2),
        (Shop().method, "thread", 1),
        (Shop.static, "thread", 2),
        (vars(Shop)["static"], "thread", 2),
        (Shop(), "thread", 3),
        (AsyncShop(), "async", 4),
    ],
)
def test_every_flavour_of_function_runs(app: App, function: Any, kind: str, result: int) -> None:
    app.task(name="x")(function).enqueue(1)
    made = call(app)
    returned = made.function(*made.args, **made.kwargs)
    if inspect.isawaitable(returned):

        async def wait() -> Any:
            return await returned

        returned = asyncio.run(wait())
    assert (made.kind, returned) == (kind, result)


def test_function_without_a_name_must_be_given_one(app: App) -> None:
    with pytest.raises(ConfigError, match="a partial has no name of its own"):
        app.task(functools.partial(add, b=1))


def test_annotation_may_name_what_is_defined_later(app: App) -> None:
    def f(it: Later) -> None: ...  # type: ignore[name-defined]  # noqa: F821  # defined below

    task: Task[..., None] = app.task(f)
    globals()["Later"] = int
    try:
        task.enqueue(it=5)
        task.check()
    finally:
        del globals()["Later"]
    assert call(app).kwargs == {"it": 5}


def test_annotation_that_never_resolves_is_told_when_a_worker_starts(app: App) -> None:
    def f(it: Decimal) -> None: ...

    app.task(f)
    with pytest.raises(ConfigError, match=r"cannot be resolved: name 'Decimal' is not defined; import it at run time"):
        app.check()


def test_return_annotation_is_not_looked_at(app: App) -> None:
    def f() -> Decimal: ...  # type: ignore[empty-body]  # never called

    app.task(f).check()


def test_process_task_that_a_process_cannot_import_is_refused_when_a_worker_starts(app: App) -> None:
    app.task(process=True)(lambda: None)
    with pytest.raises(TypeError, match="a process cannot import it"):
        app.check()


# Settings


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("name", ""),
        ("name", "a b"),
        ("name", "a\0"),
        ("name", "x" * 256),
        ("queue", "drop table"),
        ("max_attempts", 0),
        ("max_attempts", 2.0),
        ("timeout", 0),
        ("timeout", float("nan")),
        ("timeout", "5"),
        ("priority", 2**31),
        ("priority", True),
        ("retry", "often"),
        ("process", 1),
        ("version", 0),
        ("upgrade", 5),
        ("deadline", -1),
        ("deadline", float("inf")),
        ("attempts", 3),
    ],
)
def test_bad_setting_is_refused_when_the_task_is_made(app: App, setting: str, value: Any) -> None:
    make: Any = app.task
    with pytest.raises(ConfigError) as caught:
        make(**{setting: value})(add)
    assert setting in str(caught.value)
    assert setting in ("attempts", "name") or repr(value) in str(caught.value)
    assert not app.tasks


def test_settings_reach_the_job_and_the_call(app: App, clock: VirtualClock) -> None:
    task = app.task(
        queue="mail", max_attempts=7, timeout=2.5, priority=3, retry=Linear(base=1.0), deadline=60.0, process=True
    )(add)
    task.enqueue(1)
    job = take(app, "mail")
    assert (job.max_attempts, job.priority, job.deadline) == (7, 3, START + timedelta(minutes=1))
    assert app.queues == ("mail",)
    made = app.resolve(job)
    assert (made.kind, made.timeout, made.retry) == ("process", 2.5, Linear(base=1.0))


# Enqueueing


def test_handle_names_the_job(app: App) -> None:
    handle = app.task(queue="mail")(add).enqueue(1)
    assert handle == Handle(take(app, "mail").id, "mail", f"{__name__}:add")


def test_payload_holds_what_was_given_and_leaves_the_rest_to_the_defaults(app: App) -> None:
    task = app.task(name="add")(add)
    assert task.job(1).payload == b'{"task":"add","v":1,"args":{"a":1}}'
    assert task.job(1, 1).payload == b'{"task":"add","v":1,"args":{"a":1,"b":1}}'
    assert app.queue().stats().enqueued == 0


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ((), {}, "missing a required argument: 'a'"),
        ((1, 2, 3), {}, "too many positional arguments"),
        ((1,), {"c": 1}, "got an unexpected keyword argument 'c'"),
        ((1,), {"a": 1}, "multiple values for argument 'a'"),
    ],
)
def test_wrong_call_is_a_type_error_as_in_python(app: App, args: Any, kwargs: Any, said: str) -> None:
    task = app.task(add)
    with pytest.raises(TypeError, match=said):
        task.enqueue(*args, **kwargs)


def test_wrong_type_is_refused_with_the_task_and_the_argument(app: App) -> None:
    task: Any = app.task(name="add")(add)
    with pytest.raises(InvalidJob, match=r"^job 'j1': task 'add': args\.a: Expected `int`, got `str`$") as caught:
        task.options(id="j1").enqueue("5")
    assert caught.value.job_id == "j1"


def test_options_say_it_differently_for_one_call(app: App) -> None:
    task = app.task(priority=1, max_attempts=2)(add)
    zone = timezone(timedelta(hours=9))
    moment = datetime(2030, 1, 1, tzinfo=zone)
    job = task.options(run_at=moment, priority=0, id="x", deadline=moment, max_attempts=9).job(1)
    assert (job.run_at, job.priority, job.id, job.deadline, job.max_attempts) == (moment, 0, "x", moment, 9)
    plain = task.job(1)
    assert (plain.run_at, plain.priority, plain.deadline, plain.max_attempts) == (None, 1, None, 2)
    assert task.options(delay=2.5).job(1).delay == 2.5


def test_deadline_in_seconds_counts_from_the_call(app: App, clock: VirtualClock) -> None:
    later = app.task(add).options(deadline=10)
    clock.advance(5.0)
    assert later.job(1).deadline == START + timedelta(seconds=15)


@pytest.mark.parametrize("deadline", [-1, float("nan"), True, "5", 1e12])
def test_deadline_that_is_no_number_of_seconds_is_refused(app: App, deadline: Any) -> None:
    with pytest.raises(ConfigError, match="deadline: "):
        app.task(add).options(deadline=deadline).enqueue(1)


@pytest.mark.parametrize(
    "options",
    [
        {"run_at": datetime(2026, 1, 1)},  # noqa: DTZ001  # naive on purpose
        {"run_at": "2026-01-01T00:00Z"},
        {"deadline": datetime(2026, 1, 1)},  # noqa: DTZ001  # naive on purpose
        {"delay": float("nan")},
        {"delay": True},
        {"delay": -1},
        {"delay": 1, "run_at": START},
        {"priority": 1.5},
        {"id": ""},
        {"id": "a\0"},
        {"max_attempts": 0},
    ],
)
def test_odd_options_are_refused_at_enqueue(app: App, options: Any) -> None:
    with pytest.raises(InvalidJob):
        app.task(add).options(**options).enqueue(1)
    assert app.queue().stats().enqueued == 0


def test_every_form_of_a_moment_is_the_same_moment(app: App) -> None:
    task = app.task(add)
    moment = datetime(2026, 6, 1, 12, tzinfo=UTC)
    for zone in (UTC, timezone(timedelta(hours=9)), timezone(timedelta(hours=-5))):
        handle = task.options(run_at=moment.astimezone(zone)).enqueue(1)
        job = app.queue().find(handle.id)
        assert job is not None
        assert job.run_at == moment


def test_id_in_use_is_a_duplicate(app: App) -> None:
    once = app.task(add).options(id="x")
    once.enqueue(1)
    with pytest.raises(DuplicateJob):
        once.enqueue(1)


def test_many_calls_are_enqueued_or_none() -> None:
    with App("memory://", capacity=3) as app:
        task = app.task(add)
        handles = task.enqueue_many({"a": number} for number in range(2))
        assert [call(app).kwargs for _ in handles] == [{"a": 0}, {"a": 1}]
        with pytest.raises(InvalidJob, match=r"args\.a"):
            task.enqueue_many([{"a": 1}, {"a": "x"}])
        with pytest.raises(QueueFull):
            task.options(priority=1).enqueue_many([{"a": 1}, {"a": 2}])
        assert app.queue().stats().enqueued == 2


def test_async_callers_enqueue_the_same_way(app: App, clock: VirtualClock) -> None:
    task = app.task(add_later)

    async def main() -> list[Handle]:
        one, two = await task.enqueue_async(1), await task.options(priority=9).enqueue_async(2, b=3)
        return [two, one, *await task.enqueue_many_async([{"a": 3}, {"a": 4}])]

    handles = run_virtual(main(), clock)
    assert [take(app).id for _ in handles] == [handle.id for handle in handles]


# The Context


def with_context(context: Context, a: int) -> tuple[Job, int]:
    return context.job, a


def maybe_context(a: int, context: Context | None = None) -> tuple[Context | None, int]:
    return context, a


async def positional_only(context: Context, a: int, /, b: int = 2) -> tuple[Job, int, int]:
    return context.job, a, b


@pytest.mark.parametrize("function", [with_context, maybe_context])
def test_context_is_no_argument(app: App, function: Any) -> None:
    assert app.task(name="x")(function).job(a=1).payload == b'{"task":"x","v":1,"args":{"a":1}}'


def test_context_is_put_in_while_a_handler_runs(app: App, clock: VirtualClock) -> None:
    context = Context(Job(id="running"), clock)

    async def main() -> None:
        enter(context)
        for function in (with_context, positional_only):
            task: Task[..., Any] = app.task(function)
            task.enqueue(5)
            made = call(app)
            returned = made.function(*made.args, **made.kwargs)
            result = await returned if inspect.isawaitable(returned) else returned
            assert result[:2] == (context.job, 5)

    run_virtual(main(), clock)


def test_direct_call_may_bring_its_own_context(app: App, clock: VirtualClock) -> None:
    task: Any = app.task(with_context)
    context = Context(Job(id="mine"), clock)
    assert task(context, 1) == task(context=context, a=1) == (context.job, 1)
    with pytest.raises(RuntimeError, match="no handler is running"):
        task(1)


def test_context_with_a_default_is_left_out_where_no_handler_runs(app: App) -> None:
    assert app.task(maybe_context)(1) == (None, 1)
