"""Every flavour of handler runs its body, or is refused when the pool is built."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from pool_kit import Witness, async_handler, memory, started, sync_handler

from headrace.errors import ConfigError
from headrace.job import Job
from headrace.pool import Balance, Call, Pool, kind_of
from headrace.pool.call import import_path, name_of

RAN: list[str] = []


async def plain_async(job: Job) -> None:
    RAN.append(job.id)


def plain(job: Job) -> None:
    RAN.append(job.id)


def extra(job: Job, more: str) -> None:
    RAN.append(job.id)


async def extra_async(more: str, job: Job) -> None:
    RAN.append(job.id)


def generator(job: Job) -> Iterator[None]:
    RAN.append(job.id)
    yield


async def async_generator(job: Job) -> AsyncIterator[None]:
    RAN.append(job.id)
    yield


@functools.wraps(plain_async)
def wrapped(job: Job) -> Awaitable[None]:
    return plain_async(job)


@functools.wraps(plain)
def wrapped_plain(job: Job) -> None:
    plain(job)


class Object:
    async def __call__(self, job: Job) -> None:
        RAN.append(job.id)

    def method(self, job: Job) -> None:
        RAN.append(job.id)

    async def async_method(self, job: Job) -> None:
        RAN.append(job.id)

    @staticmethod
    def static(job: Job) -> None:
        RAN.append(job.id)

    @classmethod
    def of_class(cls, job: Job) -> None:
        RAN.append(job.id)

    def generator(self, job: Job) -> Iterator[None]:
        yield


class Generating:
    def __call__(self, job: Job) -> Iterator[None]:
        yield


FLAVOURS: list[tuple[Any, str]] = [
    (plain, "thread"),
    (plain_async, "async"),
    (functools.partial(extra_async, "more"), "async"),
    (functools.partial(functools.partial(extra, more="more")), "thread"),
    (Object(), "async"),
    (lambda job: plain_async(job), "thread"),
    (wrapped, "thread"),
    (wrapped_plain, "thread"),
    (Object().method, "thread"),
    (Object().async_method, "async"),
    (Object.static, "thread"),
    (Object.of_class, "thread"),
]


@pytest.mark.parametrize("balance", [None, Balance(min=0, max=4)])
@pytest.mark.parametrize(("handler", "kind"), FLAVOURS)
def test_the_body_of_every_flavour_has_run_when_its_job_is_done(
    handler: Callable[[Job], object], kind: str, balance: Balance | None
) -> None:
    assert kind_of(handler) == kind
    queue, witness = memory(), Witness()
    job = queue.enqueue(Job())
    with started(Pool(queue, handler, balance=balance, listener=witness), witness):
        witness.until_finished(1)
    assert witness.verdicts() == ["acked"]
    assert RAN[-1] == job.id


@pytest.mark.parametrize(
    "handler",
    [
        generator,
        async_generator,
        functools.partial(generator),
        Object().generator,
        Generating(),
        Object,
        extra,
        lambda: None,
        "plain",
        None,
    ],
)
@pytest.mark.parametrize("process", [False, True])
def test_what_cannot_be_a_handler_is_refused_at_construction(handler: Any, process: bool) -> None:
    with pytest.raises(TypeError, match=r"handler .*: "):
        Pool(memory(), handler, process=process)


def local_closure() -> Callable[[Job], None]:
    def inside(job: Job) -> None: ...

    return inside


@pytest.mark.parametrize(
    "handler",
    [lambda job: None, local_closure(), functools.partial(plain), Object().method, Object(), print],
)
def test_what_a_process_could_not_import_is_refused_at_construction(handler: Any) -> None:
    if handler is print:
        assert import_path(print) == "builtins:print"  # importable, so it may go
        return
    with pytest.raises(TypeError, match="top level of a module"):
        Pool(memory(), handler, process=True)


@pytest.mark.parametrize("handler", [sync_handler, async_handler, Object.static, Object.of_class, wrapped_plain])
def test_a_process_handler_may_be_any_importable_function(handler: Any) -> None:
    assert kind_of(handler, process=True) == "process"


def returns_generator(job: Job) -> object:
    return (number for number in range(3))


async def never() -> AsyncIterator[None]:
    yield


@pytest.mark.parametrize("handler", [returns_generator, lambda job: never()])
def test_a_generator_that_comes_back_is_a_failure_for_its_body_never_ran(handler: Any) -> None:
    queue, witness = memory(max_attempts=1), Witness()
    queue.enqueue(Job())
    with started(Pool(queue, handler, listener=witness), witness):
        witness.until_finished(1)
    (dead,) = queue.dead()
    assert dead.last_error == "TypeError: the handler returned a generator: its body has not run"


def test_a_builtin_without_a_signature_is_taken_at_its_word() -> None:
    Pool(memory(), max)  # type: ignore[arg-type]  # any callable may come
    assert name_of(max) == "builtins:max"


class Resolving:
    def __init__(self, result: Any) -> None:
        self.result = result

    def resolve(self, job: Job) -> Call:
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result  # type: ignore[no-any-return]  # nonsense is part of the test


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (ValueError("not JSON"), "ValueError: not JSON"),
        (SystemExit(2), "SystemExit: 2"),
        (None, "AttributeError: "),
        (Call(function=plain, kind="thread", name="x", timeout=-1, args=(Job(),)), "ConfigError: timeout: "),
    ],
)
def test_a_payload_that_cannot_be_resolved_is_a_failed_attempt(result: Any, error: str) -> None:
    queue, witness = memory(max_attempts=1), Witness()
    queue.enqueue(Job(id="bad"))
    with started(Pool(queue, Resolving(result), listener=witness), witness):
        witness.until_finished(1)
        assert queue.dead()[0].last_error is not None
        assert queue.dead()[0].last_error.startswith(error)


def test_a_call_brings_its_own_arguments_timeout_and_retry() -> None:
    seen: list[Any] = []

    async def task(*args: object, **kwargs: object) -> None:
        seen.append((args, kwargs))
        raise ValueError

    call = Call(function=task, args=(1,), kwargs={"b": 2}, kind="async", name="t", retry=lambda attempt: 33.0)  # type: ignore[arg-type]  # forgiven
    queue, witness = memory(), Witness()
    queue.enqueue(Job(id="a"))
    with started(Pool(queue, Resolving(call), listener=witness), witness):
        witness.until_finished(1)
    assert seen == [((1,), {"b": 2})]
    found = queue.find("a")
    assert found is not None
    assert found.run_at is not None
    assert witness.finished[0].name == "t"


@pytest.mark.parametrize(
    "bad",
    [
        {"workers": 0},
        {"workers": -1},
        {"workers": True},
        {"workers": 2.0},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"drain": -1},
        {"heartbeat": 0},
        {"heartbeat": 31},
        {"heartbeat": 16},
        {"name": 5},
        {"listener": object()},
        {"zombies": -1},
        {"unserved_grace": None},
        {"retry": "sometimes"},
        {"process": 1},
    ],
)
def test_a_bad_setting_is_refused_by_name_at_construction(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"^{next(iter(bad))}: "):
        Pool(memory(), plain, **bad)


def test_a_heartbeat_that_cannot_keep_a_short_lease_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"heartbeat: 1 is more than half the lease of 0\.5 s"):
        Pool(memory(lease=0.5), plain, heartbeat=1)
