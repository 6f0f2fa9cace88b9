"""The suite rejects queues that are wrong, each by the subject that is there to reject it, and no healthy one."""

from __future__ import annotations

from typing import Any

import pytest
from back_doors import memory_state

from headrace import Queue, Unsupported, connect
from headrace.testing import RawState
from headrace.testing.broken import BROKEN, Make
from headrace.testing.runner import first_failure

SOON = 1.0
"""Real seconds after which a queue that should have woken somebody is found out."""


class Maker:
    def __init__(self, make: Make, look: bool = True) -> None:
        self.make_queue = make
        self.look = look

    def reopen_queue(self, queue: Queue) -> Queue:
        raise Unsupported("memory")

    def raw_state(self, queue: Queue) -> RawState | None:
        return memory_state(queue) if self.look else None


def healthy(**settings: Any) -> Queue:
    return connect("memory://", **settings)


@pytest.mark.parametrize("look", [True, False], ids=["with a back door", "without"])
@pytest.mark.parametrize("name", BROKEN)
def test_the_suite_rejects_every_broken_queue(name: str, look: bool) -> None:
    broken = BROKEN[name]
    said = first_failure(Maker(broken.make, look), broken.subject, limit=SOON)
    assert said is not None, f"nobody noticed: {broken.rule}"
    assert not [bug for bug in ("TypeError", "AttributeError", "NameError") if f": {bug}: " in said], said


@pytest.mark.parametrize("subject", sorted({broken.subject for broken in BROKEN.values()}))
def test_a_healthy_queue_passes_what_rejects_the_broken_ones(subject: str) -> None:
    assert first_failure(Maker(healthy), subject) is None


def test_there_are_enough_broken_queues_to_mean_something() -> None:
    assert len(BROKEN) >= 22
