"""The conformance suite as one pytest class: whatever passes it is a Headrace queue.

    from headrace.testing import QueueContract

    class TestMine(QueueContract):
        def make_queue(self, **settings):
            return connect("mine://", **settings)

Every behaviour is tested through both faces by one body, in virtual time, with the invariants checked after every
call. A backend that can, brings a back door (``raw_state``); a durable one brings ``reopen_queue``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ..errors import Unsupported
from ..queue import Queue
from .bench import Bench, bench
from .machine import exercise
from .raw import RawState
from .suite.bad_input import BadInput
from .suite.dead import Dead
from .suite.lifecycle import Lifecycle
from .suite.order import Order
from .suite.overflow import Full
from .suite.settling import Settling
from .suite.states import States
from .suite.threads import Threads
from .suite.timing import Timing
from .suite.waiting import Cancelling, Waiting

SUBJECTS: tuple[type, ...] = (
    States,
    Settling,
    Order,
    Timing,
    Full,
    Dead,
    Lifecycle,
    Waiting,
    Cancelling,
    BadInput,
    Threads,
)


class QueueContract(
    States, Settling, Order, Timing, Full, Dead, Lifecycle, Waiting, Cancelling, BadInput, Threads
):  # fmt: skip
    """Subclass it, and bring ``make_queue``."""

    def make_queue(self, **settings: Any) -> Queue:
        """A new and empty queue for sync callers, with the settings of ``headrace.connect``."""
        raise NotImplementedError("a subclass of QueueContract brings make_queue(**settings)")

    def reopen_queue(self, queue: Queue) -> Queue:
        """A second handle on the storage of ``queue``, with the same settings, as a new process would open it."""
        raise Unsupported("this queue cannot be opened again")

    def raw_state(self, queue: Queue) -> RawState | None:
        """The back door: what is really stored, read without the queue's own calls. None: there is none."""
        return None

    @pytest.fixture(params=["sync", "async"])
    def bench(self, request: pytest.FixtureRequest) -> Iterator[Bench]:
        with bench(self, request.param) as made:
            yield made

    @pytest.fixture
    def lone_bench(self) -> Iterator[Bench]:
        """For tests that are about one face alone."""
        with bench(self) as made:
            yield made

    def test_any_history_agrees_with_the_reference_model(self) -> None:
        exercise(self)
