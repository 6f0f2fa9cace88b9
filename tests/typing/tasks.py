"""What a type checker knows of tasks: right calls pass; each wrong one is an error on its line.

Never run. A wrong call that were accepted would leave its ``type: ignore`` unused, which is an error too.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, assert_type

from headrace.app import App
from headrace.job import Job
from headrace.pool.context import Context
from headrace.tasks.task import Handle, Task

app = App()


@app.task
def add(a: int, b: int = 1) -> int:
    return a + b


@app.task(queue="mail", max_attempts=5, timeout=20)
async def send_email(to: str, body: str) -> None: ...


@app.task
def resize(context: Context, width: int) -> bytes: ...  # type: ignore[empty-body]  # never called


@app.task(process=True)
async def crunch(context: Context, *, level: float) -> str: ...  # type: ignore[empty-body]  # never called


async def right() -> None:
    assert_type(add(1), int)
    assert_type(await send_email("a", body="b"), None)
    later = send_email("a", "b")
    await assert_type(later, Coroutine[Any, Any, None])
    assert_type(resize(5), bytes)
    assert_type(add.enqueue(1, b=2), Handle)
    assert_type(await send_email.enqueue_async(to="a", body="b"), Handle)
    assert_type(add.enqueue_many([{"a": 1}]), list[Handle])
    assert_type(add.job(1), Job)
    assert_type(resize.enqueue(width=5), Handle)
    assert_type(crunch.enqueue(level=0.5), Handle)
    assert_type(send_email.options(delay=60, priority=5).enqueue(to="a", body="b"), Handle)
    assert_type(await send_email.options(id="x").enqueue_async("a", "b"), Handle)
    assert_type(app.tasks, Mapping[str, Task[Any, Any]])


def takes(function: Callable[[int], int]) -> None: ...


takes(add)  # a task is a function of its parameters


async def wrong() -> None:
    add.enqueue("1")  # type: ignore[arg-type]  # wrong type
    add.enqueue()  # type: ignore[call-arg]  # missing
    add.enqueue(1, 2, 3)  # type: ignore[call-arg]  # too many
    add.enqueue(1, c=2)  # type: ignore[call-arg]  # unknown
    add.job("1")  # type: ignore[arg-type]  # wrong type
    add("1")  # type: ignore[arg-type]  # wrong type
    await send_email.enqueue_async(to="a")  # type: ignore[call-arg]  # missing
    await send_email.enqueue_async(to="a", body=5)  # type: ignore[arg-type]  # wrong type
    send_email.options(delay=1).enqueue(to=5, body="b")  # type: ignore[arg-type]  # wrong type
    send_email.options(delay="1")  # type: ignore[arg-type]  # wrong type
    send_email.options(dely=1)  # type: ignore[call-arg]  # unknown
    resize.enqueue("5")  # type: ignore[arg-type]  # wrong type
    resize.enqueue(5, 5)  # type: ignore[call-arg]  # the context is not an argument
    app.task(queue=5)  # type: ignore[call-overload]  # wrong type
    app.task(attempts=5)  # type: ignore[call-overload]  # unknown
    takes(resize)  # type: ignore[arg-type]  # it returns bytes
