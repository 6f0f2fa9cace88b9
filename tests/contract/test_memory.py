"""The queue in memory obeys the contract."""

from __future__ import annotations

from typing import Any

from back_doors import memory_state

from headrace import Queue, connect
from headrace.testing import QueueContract, RawState


class TestMemory(QueueContract):
    def make_queue(self, **settings: Any) -> Queue:
        return connect("memory://", **settings)

    def raw_state(self, queue: Queue) -> RawState:
        return memory_state(queue)
