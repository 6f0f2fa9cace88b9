"""How a handler ends -> what becomes of its job, for every kind of handler, on a real queue."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pool_kit import KINDS, job, memory, read, running

from headrace.job import Job, State
from headrace.pool import Constant
from headrace.queue import Queue
from headrace.testing.clock import wait_until

MINUTE = Constant(base=60, ceiling=60, jitter="none")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def seconds_from(queue: Queue, moment: datetime | None) -> float:
    assert moment is not None
    return (moment - datetime.now(UTC)).total_seconds()


def ends(queue: Queue, kind: str, act: str, ledger: Path, **settings: object) -> tuple[str, Job | None]:
    """Run one job; returns the verdict and what the queue still knows of it."""
    queue.enqueue(job(act, ledger, id="a"))
    with running(queue, kind, retry=MINUTE, **settings) as run:
        run.witness.until_finished(1)
        found = queue.find("a")
        run.pool.stop()
        run.join()
    assert queue.stats().unaccounted == 0
    return run.witness.verdicts()[0], found


@pytest.mark.parametrize("kind", KINDS)
class TestEveryRow:
    def test_a_handler_that_returns_is_acked(self, kind: str, ledger: Path) -> None:
        queue = memory()
        assert ends(queue, kind, "return", ledger) == ("acked", None)
        assert queue.stats().acked == 1
        assert read(ledger) == ["start a 1", "end a 1"]

    def test_a_handler_that_raises_is_retried_by_the_policy_with_its_error_kept(self, kind: str, ledger: Path) -> None:
        queue = memory()
        verdict, found = ends(queue, kind, "raise", ledger)
        assert verdict == "nacked"
        assert found is not None
        assert (found.state, found.attempt, found.last_error) == (State.DELAYED, 1, "ValueError: no")
        assert 50 < seconds_from(queue, found.run_at) <= 60

    def test_the_last_attempt_that_raises_is_dead(self, kind: str, ledger: Path) -> None:
        queue = memory(max_attempts=1)
        verdict, found = ends(queue, kind, "raise", ledger)
        assert verdict == "nacked"
        assert found is not None
        assert (found.state, found.last_error) == (State.DEAD, "ValueError: no")

    def test_retry_decides_its_delay(self, kind: str, ledger: Path) -> None:
        queue = memory()
        verdict, found = ends(queue, kind, "retry", ledger)
        assert verdict == "nacked"
        assert found is not None
        assert (found.attempt, found.last_error) == (1, "busy")
        assert 30 < seconds_from(queue, found.run_at) <= 40

    def test_snooze_costs_no_attempt(self, kind: str, ledger: Path) -> None:
        queue = memory()
        verdict, found = ends(queue, kind, "snooze", ledger)
        assert verdict == "released"
        assert found is not None
        assert (found.state, found.attempt) == (State.DELAYED, 0)
        assert 40 < seconds_from(queue, found.run_at) <= 50

    def test_discard_is_dead_at_once(self, kind: str, ledger: Path) -> None:
        verdict, found = ends(memory(), kind, "discard", ledger)
        assert verdict == "buried"
        assert found is not None
        assert (found.state, found.attempt, found.last_error) == (State.DEAD, 1, "bad address")

    def test_cancel_is_done_as_cancelled(self, kind: str, ledger: Path) -> None:
        queue = memory()
        assert ends(queue, kind, "cancel", ledger) == ("cancelled", None)
        assert queue.stats().cancelled == 1
        assert queue.stats().acked == 0

    def test_a_handler_that_overruns_is_cancelled_and_retried(self, kind: str, ledger: Path) -> None:
        queue = memory()
        limit = 1.0 if kind == "process" else 0.05
        verdict, found = ends(queue, kind, "polite:5", ledger, timeout=limit)
        assert verdict == "nacked"
        assert found is not None
        assert found.last_error == f"timed out after {limit:g} s"
        if kind != "process":  # a process is killed, not told
            wait_until(lambda: "told:timed-out a 1" in read(ledger))
        assert "end a 1" not in read(ledger)

    def test_a_handler_that_lost_its_lease_is_told_at_once_and_settles_nothing(self, kind: str, ledger: Path) -> None:
        queue = memory()
        queue.enqueue(job("polite:20", ledger, id="a"))
        with running(queue, kind, heartbeat=0.02, workers=1) as run:
            wait_until(lambda: read(ledger) == ["start a 1"])
            held = next(iter(run.pool._engine.heart.held)).job  # type: ignore[union-attr]
            queue.extend(held, 0.000_001)
            run.witness.until_finished(1)
            assert run.witness.verdicts() == ["lost"]
            wait_until(lambda: "start a 2" in read(ledger))  # the lease of the second attempt is its own
            stats = queue.stats()
            assert (stats.acked, stats.retried, stats.expired_leases) == (0, 0, 1)

    def test_a_deadline_that_passed_before_pick_up_is_not_run(self, kind: str, ledger: Path) -> None:
        queue = memory()
        queue.enqueue(job("return", ledger, id="late", deadline=datetime.now(UTC) - timedelta(seconds=1)))
        queue.enqueue(job("return", ledger, id="good"))
        with running(queue, kind) as run:
            run.witness.until_finished(1)
        assert read(ledger) == ["start good 1", "end good 1"]
        assert [dead.id for dead in queue.dead()] == ["late"]
        assert queue.stats().deadline_missed == 1

    def test_a_job_that_is_cancelled_while_it_runs_is_told_and_ends_as_cancelled(self, kind: str, ledger: Path) -> None:
        queue = memory()
        queue.enqueue(job("polite:20", ledger, id="a"))
        with running(queue, kind, heartbeat=0.02) as run:
            wait_until(lambda: read(ledger) == ["start a 1"])
            queue.cancel("a")
            run.witness.until_finished(1)
        assert read(ledger) == ["start a 1", "told:cancel-requested a 1"]
        assert run.witness.verdicts() == ["cancelled"]
        assert queue.stats().cancelled == 1


BASES = [
    ("SystemExit", "SystemExit: 0"),
    ("SystemExit 3", "SystemExit: 3"),
    ("KeyboardInterrupt", "KeyboardInterrupt: "),
    ("GeneratorExit", "GeneratorExit: "),
    ("CancelledError", "CancelledError: "),
    ("Base", "Base: odd"),
    ("StopIteration", None),  # a coroutine turns it into a RuntimeError
    ("StopAsyncIteration", None),
    ("RecursionError", "RecursionError: maximum recursion depth exceeded"),
    ("MemoryError", "MemoryError: "),
    ("BaseExceptionGroup", "BaseExceptionGroup: branch (1 sub-exception)"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_exception_is_a_failed_attempt_like_any_other(kind: str, ledger: Path) -> None:
    queue = memory(max_attempts=1)
    with running(queue, kind, workers=1) as run:
        for act, _ in BASES:
            queue.enqueue(job(act, ledger, id=act))
        queue.enqueue_many([job("return", ledger) for _ in range(5)])
        run.witness.until_finished(len(BASES) + 5)
        run.pool.stop()
        assert run.join().acked == 5
    errors = {dead.id: dead.last_error for dead in queue.dead()}
    assert len(errors) == len(BASES)
    for act, text in BASES:
        assert errors[act] is not None
        assert errors[act].startswith(text or ""), act


UNSENDABLE = [
    ("NUL", "ValueError: a\\x00b"),
    ("surrogate", "ValueError: a\\ud800b"),
    ("Rebuilt", "Rebuilt: 1 and 2"),
    ("Mute", "Mute: (its message cannot be shown: ValueError)"),
    ("Locked", "Locked: holds a lock"),
    ("huge", "ValueError: xxx"),
    ("chain", "ValueError: number 999"),
    ("local", "Local: made here"),
]
RESULTS = ["object", "set", "bytes", "loop", "50 MB"]


@pytest.mark.parametrize("kind", KINDS)
def test_no_result_and_no_exception_stops_the_settling(
    kind: str, ledger: Path, caplog: pytest.LogCaptureFixture
) -> None:
    queue = memory(max_attempts=1)
    with running(queue, kind, workers=2) as run:
        for act, _ in UNSENDABLE:
            queue.enqueue(job(act, ledger, id=act))
        queue.enqueue_many([job(act, ledger, id=act) for act in RESULTS])
        queue.enqueue_many([job("return", ledger) for _ in range(5)])
        run.witness.until_finished(len(UNSENDABLE) + len(RESULTS) + 5)
        run.pool.stop()
        assert run.join().acked == len(RESULTS) + 5
    errors = {dead.id: dead.last_error for dead in queue.dead()}
    for act, text in UNSENDABLE:
        assert errors[act] is not None
        assert errors[act].startswith(text), act
        assert len(errors[act]) < 9000
    assert max(len(record.getMessage()) for record in caplog.records) < 10_000
