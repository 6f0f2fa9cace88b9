"""From a stored payload to a call: what this worker does not know is left to others, what nobody can read fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.app import App
from headrace.errors import InvalidJob
from headrace.job import Job
from headrace.pool.call import Resolver, Unserved


@pytest.fixture
def app() -> Iterator[App]:
    with App("memory://") as app:
        yield app


def greet(name: str, times: int = 1) -> None: ...


def payload(task: str = "greet", v: int = 1, args: str = '{"name":"Ada"}') -> Job:
    return Job(payload=f'{{"task":"{task}","v":{v},"args":{args}}}'.encode(), id="j1")


def test_app_is_what_a_pool_asks_for_calls(app: App) -> None:
    assert isinstance(app, Resolver)


def test_known_task_is_called_with_its_arguments(app: App) -> None:
    task = app.task(name="greet", timeout=5)(greet)
    call = app.resolve(payload())
    assert (call.function, call.args, call.kwargs) == (greet, (), {"name": "Ada"})
    assert (call.kind, call.name, call.timeout, call.retry) == ("thread", "greet", 5, None)
    assert task.name in app.tasks


def test_unknown_task_is_left_to_a_worker_that_knows_it(app: App) -> None:
    app.task(name="greet")(greet)
    with pytest.raises(Unserved, match="task 'future' is not known to this worker"):
        app.resolve(payload("future"))


def test_newer_version_is_left_to_a_worker_that_knows_it(app: App) -> None:
    app.task(name="greet", version=2)(greet)
    with pytest.raises(Unserved, match="known to this worker in version 2, the job has version 3"):
        app.resolve(payload(v=3, args='{"quite":"different"}'))


def test_old_and_new_workers_share_a_queue_during_a_deploy() -> None:
    old, new = App(), App()
    for app in (old, new):
        app.task(name="greet")(greet)
    new.task(name="future")(greet)
    with App("memory://") as shared:
        queue = shared.queue()
        queue.enqueue(Job(payload=payload("future").payload, max_attempts=1))
        job = queue.dequeue(timeout=0)
        assert job is not None
        with pytest.raises(Unserved):
            old.resolve(job)
        queue.release(job)
        again = queue.dequeue(timeout=0)
        assert again is not None
        assert again.attempt == 1
        assert new.resolve(again).kwargs == {"name": "Ada"}


def test_older_version_is_brought_up(app: App) -> None:
    def upgrade(args: dict[str, Any], v: int) -> dict[str, Any]:
        assert v == 1
        return {"name": f"{args['first']} {args['last']}"}

    app.task(name="greet", version=3, upgrade=upgrade)(greet)
    assert app.resolve(payload(args='{"first":"Ada","last":"L"}')).kwargs == {"name": "Ada L"}
    assert app.resolve(payload(v=3)).kwargs == {"name": "Ada"}


def test_older_version_without_an_upgrade_fails_naming_both(app: App) -> None:
    app.task(name="greet", version=3)(greet)
    with pytest.raises(InvalidJob, match=r"task 'greet': the job has version 1, this is version 3, and no upgrade="):
        app.resolve(payload())


@pytest.mark.parametrize("upgraded", [{"nom": "Ada"}, {"name": 5}, {}, None, [1]])
def test_upgrade_that_returns_something_else_fails(app: App, upgraded: Any) -> None:
    app.task(name="greet", version=2, upgrade=lambda args, v: upgraded)(greet)
    with pytest.raises(InvalidJob, match="task 'greet': "):
        app.resolve(payload())


def test_upgrade_that_raises_fails_with_its_own_error(app: App) -> None:
    app.task(name="greet", version=2, upgrade=lambda args, v: args["missing"])(greet)
    with pytest.raises(KeyError):
        app.resolve(payload())


@pytest.mark.parametrize(
    "stored",
    [
        b"", b"\xff\xfe", b"null", b"[]", b"{}", b"5", b'"greet"', b'{"task":"greet","v":1}', b"{" * 100_000,
        b'{"task":5,"v":1,"args":{}}', b'{"task":"greet","v":"1","args":{}}', b'{"task":"greet","v":1,"args":',
    ],
)  # fmt: skip
def test_payload_that_is_none_of_ours_is_a_failed_attempt(app: App, stored: bytes) -> None:
    app.task(name="greet")(greet)
    with pytest.raises(InvalidJob, match=r"^job 'j1': not the payload of a task: ") as caught:
        app.resolve(Job(payload=stored, id="j1"))
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("{}", "missing required field `name`"),
        ('{"name":5}', r"args\.name: Expected `str`, got `int`"),
        ('{"name":"Ada","times":null}', r"args\.times: Expected `int`, got `null`"),
        ('{"name":"Ada","loud":true}', "unknown field `loud`"),
        ("[]", "args: Expected `object`, got `array`"),
        ("null", "args: Expected `object`, got `null`"),
    ],
)
def test_arguments_that_do_not_fit_are_a_failed_attempt_with_the_reason(app: App, args: str, said: str) -> None:
    app.task(name="greet")(greet)
    with pytest.raises(InvalidJob, match=f"^job 'j1': task 'greet': .*{said}"):
        app.resolve(payload(args=args))


def test_reading_from_many_threads_is_safe(app: App) -> None:
    app.task(name="greet")(greet)
    seen: list[Any] = []

    def read() -> None:
        seen.extend(app.resolve(payload()).kwargs["name"] for _ in range(200))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == ["Ada"] * 800
