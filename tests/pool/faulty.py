"""A store that fails when told to, around a real one: the queue in front of it is the real thing."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from headrace.errors import Unavailable
from headrace.faces import faces
from headrace.memory.store import MemoryStore
from headrace.ports import LoopPort
from headrace.queue import Queue
from headrace.settings import Settings

OUTAGE = Unavailable("the store is away")


class FaultyStore:
    """``break_`` makes calls fail, before or after they take effect, until ``mend``, or so many times."""

    def __init__(self, inner: MemoryStore) -> None:
        self._inner = inner
        self._faults: dict[str, tuple[BaseException, bool, int]] = {}
        self.calls: Counter[str] = Counter()
        self.hang: dict[str, threading.Event] = {}

    def break_(self, *names: str, error: BaseException = OUTAGE, after: bool = False, times: int = -1) -> None:
        for name in names:
            self._faults[name] = (error, after, times)

    def mend(self) -> None:
        self._faults.clear()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return self._faulty(name, found) if callable(found) and name != "changed" else found

    def _faulty(self, name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.calls[name] += 1
            if name in self.hang:
                self.hang[name].wait(20)
            error, after, times = self._faults.get(name, (None, False, 0))
            if error is None or times == 0:
                return step(*args)
            self._faults[name] = (error, after, times - 1)
            if after:
                step(*args)
            raise error

        return call


def faulty(**settings: Any) -> tuple[Queue, FaultyStore]:
    store = FaultyStore(MemoryStore(Settings.make(**settings)))
    return faces(store, LoopPort()), store  # type: ignore[arg-type]  # its methods are looked up at run time
