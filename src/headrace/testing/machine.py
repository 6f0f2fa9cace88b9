"""Any history of calls, against the reference model: a Hypothesis state machine.

Time is a move like any other: to a moment, one microsecond short of it, or past it; and the wall clock steps by
itself. Leases are kept for ever and used again long after they were lost. Right after time has passed nothing is
compared, so that the next call finds due jobs that nobody has moved yet (I2c).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ..clock import SECOND
from ..errors import HeadraceError, LeaseLost
from ..job import Job
from ..queue import Queue
from .bench import Checked, Maker
from .clock import VirtualClock
from .model import EXPIRED, Entry, Model

IDS = st.sampled_from("abcd")
DELAYS = st.sampled_from([0.0, 0.000001, 1.0, 5.0, 60.0])
NEW = st.fixed_dictionaries(
    {"id": IDS, "payload": st.binary(max_size=3), "priority": st.integers(-1, 1)},
    optional={
        "max_attempts": st.integers(1, 3),
        "when": st.sampled_from([-60.0, 0.0, 1.0, 5.0, 90.0]),
        "delay": DELAYS,
        "until": st.sampled_from([-1.0, 0.0, 5.0, 90.0, 900.0]),
    },
)
SECONDS = st.sampled_from([0.000001, 1.0, 30.0, 90.0])
UNSEEN = ("fence", "token", "ref", "queue", "delay")


class QueueMachine(RuleBasedStateMachine):
    """``maker`` is set by ``exercise``."""

    maker: Maker

    @initialize(
        given=st.fixed_dictionaries(
            {
                "capacity": st.integers(2, 6),
                "max_attempts": st.integers(1, 3),
                "overflow": st.sampled_from(["reject", "drop_oldest", "drop_newest"]),
                "dead_capacity": st.sampled_from([9, 2, 1, 0]),
                "deadline_to_dead": st.booleans(),
            }
        ),
        first=st.lists(NEW, min_size=1, max_size=4, unique_by=lambda given: given["id"]),
    )
    def open(self, given: dict[str, Any], first: list[dict[str, Any]]) -> None:
        self.clock = VirtualClock()
        plain = self.maker.make_queue(clock=self.clock, lease=30.0, **given)
        self.queue = cast(Queue, Checked(plain, plain, self.maker.raw_state))
        durable = plain.capabilities.durable
        self.model = Model(self.clock.steady(), lease=30 * SECOND, durable=durable, **given)
        self.leases: list[tuple[Job, int]] = []
        self.compare = True
        self.enqueue(first)

    def teardown(self) -> None:
        if hasattr(self, "queue"):
            self.queue.close()

    # Both do it, and either both answer the same or both raise the same.

    def both(self, real: Callable[[], Any], modelled: Callable[[], Any]) -> None:
        self.compare = True
        expected, answer = self.outcome(modelled), self.outcome(real)
        assert answer == expected, f"the queue: {answer}; the model: {expected}"

    def outcome(self, call: Callable[[], Any]) -> Any:
        try:
            return self.plain(call())
        except HeadraceError as error:
            return type(error)

    def plain(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.plain(one) for one in value]
        if isinstance(value, Entry):
            value = self.model.shown(value)
        if isinstance(value, Job):
            shown = {name: getattr(value, name) for name in Job.__struct_fields__ if name not in UNSEEN}
            error = shown["last_error"] or ""
            # The words are the backend's own, where the queue and not a handler speaks.
            shown["last_error"] = next((word for word in (EXPIRED, "deadline") if word in error), error)
            return shown
        return value

    def job(self, given: dict[str, Any]) -> Job:
        given = dict(given)
        when, until = given.pop("when", None), given.pop("until", None)
        now = self.clock.now()
        if when is not None:
            given.pop("delay", None)
            given["run_at"] = now + timedelta(seconds=when)
        if until is not None:
            given["deadline"] = now + timedelta(seconds=until)
        return Job(**given)

    # Moves. Few rules, each with a choice inside: the more rules, the less often the ones that matter come up.

    @rule(batch=st.lists(NEW, max_size=3, unique_by=lambda given: given["id"]))
    def enqueue(self, batch: list[dict[str, Any]]) -> None:
        jobs = [self.job(given) for given in batch]
        if len(jobs) == 1:
            self.both(lambda: len([self.queue.enqueue(jobs[0])]), lambda: self.model.enqueue(jobs))
        else:
            self.both(lambda: len(self.queue.enqueue_many(jobs)), lambda: self.model.enqueue(jobs))

    @rule(limit=st.integers(1, 3))
    def dequeue(self, limit: int) -> None:
        real: list[Job] = []
        modelled: list[Entry] = []

        def take() -> list[Job]:
            real.extend(self.queue.dequeue_many(limit, timeout=0))
            return real

        def model() -> list[Entry]:
            modelled.extend(self.model.dequeue(limit))
            return modelled

        self.both(take, model)
        self.leases += zip(real, [entry.lease for entry in modelled], strict=True)

    @rule(limit=st.integers(1, 3))
    def dequeue_as_often(self, limit: int) -> None:
        self.dequeue(limit)

    @precondition(lambda self: self.leases)
    @rule(
        how=st.sampled_from(["nack", "ack", "bury", "release", "nack", "cancel", "release_many"]),
        which=st.integers(0, 2),
        delay=DELAYS,
        error=st.sampled_from([None, "oops"]),
    )
    def settle(self, how: str, which: int, delay: float, error: str | None) -> None:
        if how == "release_many":
            self.release_many(self.leases[-1 - which :], delay)
            return
        job, lease = self.leases[-1 - which % len(self.leases)]
        given = {"nack": (delay, error), "release": (delay,), "bury": (error,)}.get(how, ())

        def real() -> None:
            getattr(self.queue, how)(job, *given)

        self.both(real, lambda: self.model.settle(how, lease, round(delay * SECOND), error))

    def release_many(self, leases: list[tuple[Job, int]], delay: float) -> None:
        def real() -> list[int]:
            try:
                self.queue.release_many([job for job, _ in leases], delay)
            except LeaseLost as error:
                return [job.fence for job in error.jobs]
            return []

        def model() -> list[int]:
            lost = self.model.release_many([lease for _, lease in leases], round(delay * SECOND))
            return [job.fence for job, lease in leases if lease in lost]

        self.both(real, model)

    @precondition(lambda self: self.leases)
    @rule(which=st.integers(0, 2), seconds=SECONDS)
    def extend(self, which: int, seconds: float) -> None:
        job, lease = self.leases[-1 - which % len(self.leases)]
        self.both(lambda: self.queue.extend(job, seconds), lambda: self.model.extend(lease, round(seconds * SECOND)))

    @rule(how=st.sampled_from(["find", "cancel"] * 8 + ["resume"] * 5 + ["pause"] * 2 + ["close"]), id=IDS)
    def by_id_or_for_all(self, how: str, id: str) -> None:
        given = (id,) if how in ("find", "cancel") else ()
        self.both(lambda: getattr(self.queue, how)(*given), lambda: getattr(self.model, how)(*given))

    @rule(
        how=st.sampled_from(["replay", "dead", "take_dead"]),
        limit=st.integers(-1, 3),
        ids=st.none() | st.lists(IDS, max_size=3),
    )
    def the_dead(self, how: str, limit: int, ids: list[str] | None) -> None:
        if how == "replay":
            most = None if limit < 0 else limit
            self.both(lambda: self.queue.replay(most, ids), lambda: self.model.replay(most, ids))
        elif how == "dead":
            self.both(lambda: self.queue.dead(limit), lambda: self.model.look_dead(limit))
        else:
            self.both(lambda: self.queue.take_dead(limit), lambda: self.model.take_dead(limit))

    @precondition(lambda self: self.model.moments())
    @rule(which=st.integers(0, 3), off=st.sampled_from([0, 0, -1, 1]))
    def advance_to_a_moment(self, which: int, off: int) -> None:
        moments = self.model.moments()
        self.advance(max(0, moments[which % len(moments)] + off - self.model.now))

    @rule(seconds=st.sampled_from([0.000001, 0.5, 5.0, 30.0, 100.0]))
    def advance_by(self, seconds: float) -> None:
        self.advance(round(seconds * SECOND))

    def advance(self, micros: int) -> None:
        self.clock.advance(micros / SECOND)
        self.model.now += micros
        self.compare = False

    @rule(seconds=st.sampled_from([-3600.0, -10.0, 10.0, 3600.0]))
    def step_the_wall_clock(self, seconds: float) -> None:
        self.clock.step(seconds)
        self.advance(SECOND)  # a queue looks at the calendar now and then, not at every call
        self.model.step(round(seconds * SECOND))

    @invariant()
    def the_figures_agree(self) -> None:
        if hasattr(self, "queue") and self.compare:
            expected = self.model.stats()
            stats = self.queue.stats()
            figures = {name: getattr(stats, name) for name in stats.__struct_fields__}
            assert {name: figures[name] for name in expected} == expected
            assert not [name for name in set(self.model.totals) - set(expected) if figures[name]]


def exercise(maker: Maker, examples: int | None = None, steps: int = 60) -> None:
    """Run the machine on queues of ``maker``. HEADRACE_HYPOTHESIS=thorough in the environment: for much longer."""
    thorough = os.environ.get("HEADRACE_HYPOTHESIS") == "thorough"
    machine = type("Machine", (QueueMachine,), {"maker": maker})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples or (3000 if thorough else 150),
            stateful_step_count=100 if thorough and steps == 60 else steps,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        ),
    )
