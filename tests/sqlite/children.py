"""Real processes for tests: a function run in a forked child, its result, its error, its end.

The child is forked, so it starts in milliseconds; open no queue before the fork unless that is the test.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any


class ChildFailed(AssertionError):
    """Carries the child's own traceback."""


class Child:
    """``call(*args)`` in a process of its own; ``say`` inside it sends an object that ``hear`` gets here."""

    def __init__(self, call: Callable[..., Any], *args: Any) -> None:
        self._from_child, write = os.pipe()
        read, self._to_child = os.pipe()
        self._ended = False
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.close(self._from_child)
                os.close(self._to_child)
                _Inside.write, _Inside.read = write, read
                say(("result", call(*args)))
                status = 0
            except BaseException:
                say(("error", traceback.format_exc()))
            finally:
                os._exit(status)
        os.close(write)
        os.close(read)

    def hear(self, limit: float = 20.0) -> Any:
        """The next object that the child says."""
        kind, value = self._next(limit)
        assert kind == "said", f"the child ended: {value}"
        return value

    def tell(self) -> None:
        """Lets a child go on that is in ``listen``."""
        os.write(self._to_child, b".")

    def result(self, limit: float = 20.0) -> Any:
        """What the call returned; ChildFailed with its traceback when it raised."""
        kind, value = "said", None
        while kind == "said":
            kind, value = self._next(limit)
        self.end()
        if kind == "error":
            raise ChildFailed(value)
        return value

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.end()

    def end(self) -> int:
        """Wait for the end of the process; its status, as ``Popen.returncode``."""
        if self._ended:
            return 0
        _, status = os.waitpid(self.pid, 0)
        self._ended = True
        os.close(self._from_child)
        os.close(self._to_child)
        return os.waitstatus_to_exitcode(status)

    def _next(self, limit: float) -> Any:
        end = time.monotonic() + limit
        size = int.from_bytes(self._exactly(4, end), "big")
        return pickle.loads(self._exactly(size, end))

    def _exactly(self, size: int, end: float) -> bytes:
        data = b""
        while len(data) < size:
            if not select.select([self._from_child], [], [], max(0.0, end - time.monotonic()))[0]:
                self.kill()
                raise TimeoutError("the child said nothing in time")
            part = os.read(self._from_child, size - len(data))
            if not part:
                raise ChildFailed(f"the child ended without a word: {self.end()}")
            data += part
        return data


class _Inside:
    write = read = -1


def say(message: Any) -> None:
    """In a child: send ``message`` to the parent's ``hear``."""
    if not (isinstance(message, tuple) and message and message[0] in ("result", "error")):
        message = ("said", message)
    data = pickle.dumps(message)
    data = len(data).to_bytes(4, "big") + data
    while data:
        data = data[os.write(_Inside.write, data) :]


def listen() -> None:
    """In a child: wait for the parent's ``tell``."""
    os.read(_Inside.read, 1)


def together(calls: Iterable[tuple[Callable[..., Any], tuple[Any, ...]]], limit: float = 40.0) -> list[Any]:
    """All of the calls at once, each in its own process; their results in order."""
    children = [Child(_behind_barrier, call, args) for call, args in calls]
    for child in children:
        child.hear()
    for child in children:
        child.tell()
    return [child.result(limit) for child in children]


def _behind_barrier(call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    say("here")
    listen()
    return call(*args)
