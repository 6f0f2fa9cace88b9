"""For the pool's tests: a pool in a thread, handlers that do as their payload says, and a ledger they write to.

The ledger is a file opened with O_APPEND, so that handlers in threads, tasks and processes can all witness.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import headrace
from headrace.job import Cancel, Discard, Job, Retry, Snooze
from headrace.pool import Event, Finished, Pool, Summary, current
from headrace.queue import Queue
from headrace.testing.clock import wait_until

KINDS = ["async", "thread", "process"]


class Rebuilt(Exception):
    """Cannot be unpickled: its __init__ needs more than its args."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")

    __repr__ = __str__


class Base(BaseException):
    pass


class Locked(Exception):
    def __init__(self) -> None:
        super().__init__("holds a lock")
        self.lock = threading.Lock()


def chain(length: int) -> Exception:
    error = ValueError("the first")
    for number in range(length):
        last, error = error, ValueError(f"number {number}")
        error.__cause__ = last
    return error


def nested(depth: int) -> BaseExceptionGroup[BaseException]:
    group: BaseExceptionGroup[BaseException] = BaseExceptionGroup("leaf", [KeyboardInterrupt("k")])
    for _ in range(depth):
        group = BaseExceptionGroup("branch", [group])
    return group


def deep(number: int = 0) -> int:
    return deep(number + 1)


def throw(error: BaseException) -> None:
    raise error


class Looped(dict[str, Any]):
    def __init__(self) -> None:
        self["me"] = self


ACTS: dict[str, Callable[[], object]] = {
    "return": lambda: None,
    "raise": lambda: throw(ValueError("no")),
    "retry": lambda: throw(Retry(delay=40, error="busy")),
    "snooze": lambda: throw(Snooze(50)),
    "discard": lambda: throw(Discard("bad address")),
    "cancel": lambda: throw(Cancel("too late")),
    "SystemExit": lambda: sys.exit(0),
    "SystemExit 3": lambda: sys.exit(3),
    "KeyboardInterrupt": lambda: throw(KeyboardInterrupt()),
    "GeneratorExit": lambda: throw(GeneratorExit()),
    "CancelledError": lambda: throw(asyncio.CancelledError()),
    "Base": lambda: throw(Base("odd")),
    "StopIteration": lambda: throw(StopIteration(1)),
    "StopAsyncIteration": lambda: throw(StopAsyncIteration(1)),
    "RecursionError": deep,
    "MemoryError": lambda: throw(MemoryError()),
    "BaseExceptionGroup": lambda: throw(nested(3)),
    "NUL": lambda: throw(ValueError("a\0b")),
    "surrogate": lambda: throw(ValueError("a\ud800b")),
    "Rebuilt": lambda: throw(Rebuilt(1, 2)),
    "Mute": lambda: throw(Mute()),
    "Locked": lambda: throw(Locked()),
    "huge": lambda: throw(ValueError("x" * 50_000_000)),
    "chain": lambda: throw(chain(1000)),
    "local": lambda: throw(type("Local", (Exception,), {})("made here")),
    "object": object,
    "set": lambda: {1, 2},
    "bytes": lambda: b"x",
    "loop": Looped,
    "50 MB": lambda: "x" * 50_000_000,
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda: os._exit(0),
}


def note(ledger: str, what: str) -> None:
    file = os.open(ledger, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    try:
        os.write(file, f"{what}\n".encode())
    finally:
        os.close(file)


def job(act: str, ledger: Path, **given: Any) -> Job:
    return Job(payload=json.dumps([act, str(ledger)]).encode(), **given)


def read(ledger: Path) -> list[str]:
    return ledger.read_text().splitlines() if ledger.exists() else []


def begin(given: Job) -> tuple[str, str, Callable[[str], None]]:
    act, ledger = json.loads(given.payload)
    name, _, rest = act.partition(":")

    def tell(what: str) -> None:
        note(ledger, f"{what} {given.id} {given.attempt}")

    tell("start")
    return name, rest, tell


def sync_handler(given: Job) -> object:
    """``sleep:s`` blocks, ``stubborn:s`` blocks through every Exception, ``polite:s`` sleeps until told."""
    name, rest, tell = begin(given)
    if name in ("sleep", "stubborn", "block"):
        time.sleep(float(rest))
    elif name == "polite":
        if current().wait_cancelled(float(rest)):
            tell(f"told:{current().reason}".replace(" ", "-"))
            current().raise_if_cancelled()
    else:
        ACTS[name]()
    tell("end")
    return ACTS[name]() if name in ("object", "set", "bytes", "loop", "50 MB") else None


async def async_handler(given: Job) -> object:
    """The same, but ``sleep`` and ``polite`` await; ``stubborn`` swallows its cancellation; ``block`` blocks."""
    name, rest, tell = begin(given)
    if name == "block":
        time.sleep(float(rest))  # noqa: ASYNC251  # blocking the loop is the point
    elif name == "stubborn":
        end = time.monotonic() + float(rest)
        while (left := end - time.monotonic()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                tell("swallowed")
    elif name in ("sleep", "polite"):
        try:
            await asyncio.sleep(float(rest))
        except asyncio.CancelledError:
            tell(f"told:{current().reason}".replace(" ", "-"))
            raise
    else:
        ACTS[name]()
    tell("end")
    return ACTS[name]() if name in ("object", "set", "bytes", "loop", "50 MB") else None


class Witness:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def on(self, event: Event) -> None:
        self.events.append(event)

    @property
    def finished(self) -> list[Finished]:
        return [event for event in self.events if isinstance(event, Finished)]

    def verdicts(self) -> list[str]:
        return [event.verdict for event in self.finished]

    def until_finished(self, count: int, limit: float = 20.0) -> None:
        wait_until(lambda: len(self.finished) >= count, limit)


class Running:
    """A pool that runs in a thread of its own."""

    def __init__(self, pool: Pool, witness: Witness) -> None:
        self.pool = pool
        self.witness = witness
        self.summary: Summary | None = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.summary = self.pool.run()
        except BaseException as error:
            self.error = error

    def join(self, limit: float = 20.0) -> Summary:
        self._thread.join(limit)
        assert not self._thread.is_alive(), "the pool did not stop"
        if self.error is not None:
            raise self.error
        assert self.summary is not None
        return self.summary

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()


def make(queue: Queue, kind: str, **settings: Any) -> tuple[Pool, Witness]:
    witness = Witness()
    handler = async_handler if kind == "async" else sync_handler
    settings.setdefault("workers", 4)
    settings.setdefault("listener", witness)
    return Pool(queue, handler, process=kind == "process", **settings), witness


@contextmanager
def running(queue: Queue, kind: str, **settings: Any) -> Iterator[Running]:
    pool, witness = make(queue, kind, **settings)
    with started(pool, witness) as run:
        yield run


@contextmanager
def started(pool: Pool, witness: Witness | None = None) -> Iterator[Running]:
    run = Running(pool, witness or Witness())
    try:
        yield run
    finally:
        if not run.ended:
            pool.stop(0)
            pool.stop(0)
            run._thread.join(20)
            assert run.ended


def memory(**settings: Any) -> Queue:
    return headrace.connect("memory://", **settings)


def ours() -> list[threading.Thread]:
    """The pool's threads. That of an SQLite handle is the handle's: one that another test left to the garbage
    collector may still be there."""
    names = (thread for thread in threading.enumerate() if thread.name.startswith("headrace"))
    return [thread for thread in names if not thread.name.startswith("headrace-sqlite")]
