"""The queue in memory obeys the contract, whatever its core is made of."""

from __future__ import annotations

import shutil
from typing import Any

from back_doors import memory_state

from headrace import Queue
from headrace.chosen import COMPILED, INTERPRETED, built
from headrace.memory.queue import memory_queue
from headrace.settings import Settings
from headrace.testing import QueueContract, RawState


def suite(core: str) -> type[QueueContract]:
    class Memory(QueueContract):
        def make_queue(self, **settings: Any) -> Queue:
            return memory_queue(Settings.make(**settings), core)

        def raw_state(self, queue: Queue) -> RawState:
            return memory_state(queue)

    return Memory


for core in built():
    globals()[f"Test{core.title()}Memory"] = suite(core)


def test_where_a_compiler_is_the_compiled_core_is_there_too() -> None:
    assert built() == ([INTERPRETED, COMPILED] if shutil.which("cc") or shutil.which("gcc") else [INTERPRETED])
