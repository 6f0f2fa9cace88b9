"""A store that is away, loops that fail, hang or crash: nothing is lost, and nobody pretends to be well."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from faulty import FaultyStore, faulty
from pool_kit import Witness, async_handler, job, memory, read, running, started

from headrace.errors import ConfigError
from headrace.faces import faces
from headrace.job import Cancel, Discard, Job, Snooze
from headrace.memory.store import MemoryStore
from headrace.pool import Event, Pool, PoolFailed, engine, report, waiting
from headrace.pool.waiting import Outage
from headrace.ports import ExecutorPort
from headrace.settings import Settings
from headrace.testing.clock import wait_until


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def outages(caplog: pytest.LogCaptureFixture, doing: str) -> tuple[int, int]:
    """How often its beginning and its end were logged."""
    lines = [record.getMessage() for record in caplog.records if record.getMessage().startswith(doing)]
    return sum("failed, trying" in line for line in lines), sum("works again" in line for line in lines)


def test_an_ack_that_cannot_be_written_is_written_later_and_the_job_runs_once(
    ledger: Path, caplog: pytest.LogCaptureFixture
) -> None:
    queue, store = faulty(lease=30)
    store.break_("ack")
    queue.enqueue_many([job("return", ledger, id=f"j{number}") for number in range(20)])
    with running(queue, "async", workers=20, heartbeat=0.05) as run:
        wait_until(lambda: store.calls["ack"] >= 4)
        assert run.witness.finished == []
        assert run.pool.health().reasons == ("settling fails",)
        assert run.pool.health().running == 20  # the slots are taken: what is unsent is bounded
        store.mend()
        run.witness.until_finished(20)
        assert run.witness.verdicts() == ["acked"] * 20
        queue.enqueue(job("return", ledger, id="next"))
        run.witness.until_finished(21)
        wait_until(lambda: run.pool.health().ok)
    assert sum(line.startswith("start") for line in read(ledger)) == 21
    assert (queue.stats().acked, queue.stats().retried) == (21, 0)
    assert outages(caplog, "settling") == (1, 1)


@pytest.mark.parametrize("act", ["raise", "snooze", "discard", "cancel"])
def test_every_other_ending_waits_for_the_store_too(act: str, ledger: Path) -> None:
    queue, store = faulty(max_attempts=1)
    store.break_("nack", "release", "bury", "abandon")
    queue.enqueue(job(act, ledger, id="a"))
    with running(queue, "thread") as run:
        wait_until(lambda: sum(store.calls[name] for name in ("nack", "release", "bury", "abandon")) >= 3)
        store.mend()
        run.witness.until_finished(1)
    assert run.witness.verdicts() != ["lost"]
    assert read(ledger) == ["start a 1"]
    assert queue.stats().unaccounted == 0


def test_an_outage_longer_than_the_lease_lets_the_job_run_again_but_never_fails_it(
    ledger: Path, caplog: pytest.LogCaptureFixture
) -> None:
    queue, store = faulty(lease=0.6, max_attempts=9)
    store.break_("ack", "extend")
    queue.enqueue(job("return", ledger, id="a"))
    with running(queue, "async") as run:
        run.witness.until_finished(1)
        store.mend()
        wait_until(lambda: "acked" in run.witness.verdicts())
        verdicts = run.witness.verdicts()
    assert verdicts == ["lost"] * (len(verdicts) - 1) + ["acked"]
    assert len(verdicts) >= 2
    assert sum(line.startswith("start") for line in read(ledger)) == len(verdicts)
    assert (queue.stats().retried, queue.stats().dead_total) == (0, 0)
    assert "could not be settled before its lease ended" in caplog.text


def test_the_lease_of_a_finished_job_is_kept_until_its_ack_can_be_written(ledger: Path) -> None:
    queue, store = faulty(lease=0.9)
    store.break_("ack")
    queue.enqueue(job("return", ledger, id="a"))
    with running(queue, "async", heartbeat=0.1) as run:
        wait_until(lambda: store.calls["ack"] >= 1)
        wait_until(lambda: store.calls["extend"] >= 14)  # 1.4 s: longer than the lease
        store.mend()
        run.witness.until_finished(1)
        assert run.witness.verdicts() == ["acked"]
    assert read(ledger) == ["start a 1", "end a 1"]
    assert queue.stats().expired_leases == 0


def test_an_ack_whose_reply_was_lost_is_fenced_the_second_time(ledger: Path) -> None:
    queue, store = faulty()
    store.break_("ack", after=True, times=1)
    queue.enqueue(job("return", ledger, id="a"))
    with running(queue, "async") as run:
        run.witness.until_finished(1)
        assert run.witness.verdicts() == ["lost"]
        wait_until(lambda: run.pool.health().ok)
    assert read(ledger) == ["start a 1", "end a 1"]
    assert queue.stats().acked == 1
    assert queue.stats().unaccounted == 0


def test_one_lost_lease_in_a_batch_leaves_the_others_acked() -> None:
    queue, witness = memory(), Witness()
    gate = threading.Event()

    async def handler(given: Job) -> None:
        if given.id == "b":
            queue.extend(given, 0.000_001)
        if given.id == "c":
            gate.set()

    queue.enqueue_many([Job(id=name) for name in "abc"])
    with started(Pool(queue, handler, listener=witness, workers=3), witness) as run:
        witness.until_finished(3)
        run.pool.stop()
        run.join()
    assert gate.is_set()
    assert {event.job.id: event.verdict for event in witness.finished[:3]} == {"a": "acked", "b": "lost", "c": "acked"}


@pytest.mark.parametrize("outcome", [ValueError("no"), Snooze(5), Discard("bad"), Cancel("late")])
def test_a_lease_that_is_lost_by_the_time_of_settling_is_counted_and_changes_nothing(outcome: Exception) -> None:
    queue, witness = memory(), Witness()

    async def handler(given: Job) -> None:
        if given.attempt == 1:
            queue.extend(given, 0.000_001)
            raise outcome

    queue.enqueue(Job(id="a"))
    with started(Pool(queue, handler, listener=witness, workers=1), witness):
        witness.until_finished(2)
    assert witness.verdicts() == ["lost", "acked"]
    assert (queue.stats().ack_too_late, queue.stats().retried, queue.stats().dead) == (1, 0, 0)


def test_an_ending_for_which_no_action_can_be_found_does_not_keep_its_slot(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug in the rules")

    monkeypatch.setattr(report, "decide", broken)
    queue, witness = memory(), Witness()
    queue.enqueue(Job(id="a"))
    with started(Pool(queue, async_handler, listener=witness), witness):
        witness.until_finished(1)
    assert witness.finished[0].error == "ZeroDivisionError: a bug in the rules"
    assert "no action could be found" in caplog.text


def test_a_store_that_is_away_for_fetching_is_waited_out(ledger: Path, caplog: pytest.LogCaptureFixture) -> None:
    queue, store = faulty()
    store.break_("take")
    with running(queue, "async") as run:
        wait_until(lambda: store.calls["take"] >= 5)
        assert run.pool.health().reasons == ("fetching fails",)
        queue.enqueue(job("return", ledger))
        store.mend()
        run.witness.until_finished(1)
        wait_until(lambda: run.pool.health().ok)
    assert outages(caplog, "fetching") == (1, 1)


def test_heartbeats_are_tried_again_and_the_lease_survives_a_short_outage(
    ledger: Path, caplog: pytest.LogCaptureFixture
) -> None:
    queue, store = faulty(lease=1.2)
    queue.enqueue(job("sleep:2.5", ledger, id="a"))
    with running(queue, "async") as run:
        store.break_("extend", times=2)
        run.witness.until_finished(1)
        assert run.witness.verdicts() == ["acked"]
    assert read(ledger) == ["start a 1", "end a 1"]
    assert outages(caplog, "extending") == (1, 1)


@pytest.mark.parametrize("hang", [False, True])
def test_a_lease_that_must_be_over_counts_as_lost_whatever_the_store_would_say(hang: bool, ledger: Path) -> None:
    queue, store = faulty(lease=0.6)
    queue.enqueue(job("polite:20", ledger, id="a"))
    release = threading.Event()
    with running(queue, "thread") as run:
        wait_until(lambda: read(ledger) == ["start a 1"])
        if hang:
            store.hang["extend"] = release
        else:
            store.break_("extend")
        wait_until(lambda: "told:lease-lost a 1" in read(ledger))
        wait_until(lambda: not run.pool.health().ok)
        release.set()
    assert run.witness.verdicts()[0] == "lost"


@pytest.mark.parametrize("step", ["take", "extend", "ack"])
def test_a_loop_that_raises_once_is_restarted(step: str, ledger: Path, caplog: pytest.LogCaptureFixture) -> None:
    queue, store = faulty()
    store.break_(step, error=ZeroDivisionError("a bug"), times=1)
    queue.enqueue(job("sleep:0.3", ledger))
    with running(queue, "async", heartbeat=0.05) as run:
        run.witness.until_finished(1)
        queue.enqueue(job("return", ledger))
        run.witness.until_finished(2)
        assert run.witness.verdicts() == ["acked", "acked"]
        wait_until(lambda: run.pool.health().ok)
    assert "ZeroDivisionError: a bug" in caplog.text


def test_an_ack_that_fails_in_the_fetching_task_is_told_and_comes_again(
    ledger: Path, caplog: pytest.LogCaptureFixture
) -> None:
    queue, store = faulty()
    store.break_("ack", error=ZeroDivisionError("a bug"), times=1)
    queue.enqueue(job("return", ledger))
    with running(queue, "async") as run:
        run.witness.until_finished(1)
        assert run.witness.verdicts() == ["acked"]
        wait_until(lambda: run.pool.health().ok)
    assert "settling jobs failed" in caplog.text
    assert "ZeroDivisionError: a bug" in caplog.text
    assert store.calls["ack"] == 2


class LateAnswer(FaultyStore):
    """The second look that finds nothing is the last of a fetch from a closed queue. It is answered late: ``looked``
    tells when it is done, ``answer`` lets it go."""

    def __init__(self, inner: MemoryStore) -> None:
        super().__init__(inner)
        self.looked, self.answer = threading.Event(), threading.Event()
        self._nothing = 0

    def take(self, limit: int) -> list[Job]:
        taken = self._inner.take(limit)
        self._nothing += not taken
        if self._nothing == 2:
            self.looked.set()
            self.answer.wait(20)
        return taken


def test_a_job_that_came_back_after_the_look_that_found_nothing_is_drained_too() -> None:
    store = LateAnswer(MemoryStore(Settings.make()))
    queue = faces(store, ExecutorPort("late", threads=4))  # type: ignore[arg-type]  # looked up at run time
    queue.enqueue(Job(id="a"))
    queue.close()
    attempts: list[int] = []

    def handler(job: Job) -> None:
        store.looked.wait(20)  # by the worker that has nothing to do
        attempts.append(job.attempt)
        if job.attempt == 1:
            raise OSError

    witness = Witness()
    with started(Pool(queue, handler, workers=2, retry=lambda attempt: 0.0, listener=witness), witness) as run:
        witness.until_finished(1)
        store.answer.set()
        run.join()
    assert attempts == [1, 2]


def test_a_fetch_that_is_cancelled_gives_all_that_it_took_back_in_one_step() -> None:
    _, store = faulty()
    queue = faces(store, ExecutorPort("fetch"))  # type: ignore[arg-type]  # its methods are looked up at run time
    queue.enqueue_many([Job() for _ in range(5)])
    let_go = store.hang["take"] = threading.Event()

    async def main() -> None:
        fetching = asyncio.create_task(queue.as_async.dequeue_many(5))
        await asyncio.sleep(0)
        wait_until(lambda: store.calls["take"] == 1)
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching

    asyncio.run(main())
    let_go.set()
    wait_until(lambda: store.calls["release"] > 0 and queue.stats().ready == 5)
    assert store.calls["release"] == 1
    queue.close()


@pytest.mark.parametrize("act", ["return", "sleep:0.01"])
def test_a_stop_while_an_ack_is_under_way_waits_for_it(act: str, ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = memory()
    asked, go = threading.Event(), asyncio.Event()
    face = type(queue.as_async)
    ack_many = face.ack_many

    async def slow(self: Any, jobs: Any) -> None:
        asked.set()
        await go.wait()
        await ack_many(self, jobs)

    monkeypatch.setattr(face, "ack_many", slow)
    queue.enqueue(job(act, ledger))
    with running(queue, "async", workers=1) as run:
        assert asked.wait(10)
        queue.enqueue(job(act, ledger, id="late"))
        run.pool.stop()
        wait_until(lambda: run.pool.health().phase == "draining")
        assert run.pool._loop is not None
        run.pool._loop.call_soon_threadsafe(go.set)
        summary = run.join()
    assert (summary.picked_up, summary.acked) == (1, 1)
    assert (queue.stats().ready, queue.stats().inflight, summary.left) == (1, 0, 0)


@pytest.mark.parametrize("step", ["take", "extend", "ack"])
def test_a_loop_that_only_raises_ends_the_pool_with_an_error(
    step: str, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.pool.waiting.TOO_OFTEN", 3)
    queue, store = faulty(lease=30)
    queue.enqueue(job("return" if step == "ack" else "sleep:30", ledger))
    with running(queue, "async", heartbeat=0.05, drain=0.2) as run:
        if step != "take":
            wait_until(lambda: read(ledger) != [])
        store.break_(step, error=ZeroDivisionError("a bug"))
        queue.enqueue(job("return", ledger))  # wakes the fetch, and gives the settler something to do
        wait_until(lambda: not run.pool.health().ok)
        wait_until(lambda: run.ended)
        with pytest.raises(PoolFailed, match="ZeroDivisionError: a bug"):
            run.join()
    assert not run.pool.health().ok


@pytest.mark.parametrize("step", ["extend", "take"])
def test_a_loop_that_hangs_is_noticed_and_ends_the_pool(
    step: str, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "HUNG", 0.3)
    queue, store = faulty(lease=30)
    release = store.hang["extend"] = threading.Event()
    if step == "take":  # the loop must go on, as it does when a store answers from a thread of its own
        store.hang.clear()
        monkeypatch.setattr(type(queue.as_async), "dequeue_many", _never)
    else:
        queue.enqueue(job("polite:20", ledger))
    with running(queue, "async", heartbeat=0.05, drain=0.1) as run:
        wait_until(lambda: run.ended)
        release.set()
        with pytest.raises(PoolFailed, match="has hung for"):
            run.join()


async def _never(*_: object) -> list[Job]:
    return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]  # it never returns


def test_a_listener_that_fails_is_called_no_more_and_harms_nothing(
    ledger: Path, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Event] = []

    class Broken:
        def on(self, event: Event) -> None:
            heard.append(event)
            raise ValueError("deaf")

    queue = memory()
    queue.enqueue_many([job("return", ledger) for _ in range(5)])
    queue.close()
    assert Pool(queue, async_handler, listener=Broken()).run().acked == 5
    assert len(heard) == 1
    assert "the listener failed" in caplog.text


def test_who_may_not_fetch_is_told_once_in_words_and_goes_on_when_they_may(
    ledger: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "REFUSED", 0.01)
    queue, store = faulty()
    store.break_("take", error=ConfigError("this user may not do that: GRANT it"))
    queue.enqueue(job("return", ledger))
    with running(queue, "async") as run:
        wait_until(lambda: store.calls["take"] >= 2 * waiting.TOO_OFTEN or run.ended)
        assert not run.ended
        assert run.pool.health().reasons == ("fetching fails",)
        store.mend()
        run.witness.until_finished(1)
    first, last = [record for record in caplog.records if record.getMessage().startswith("fetching jobs")]
    assert first.getMessage() == (
        "fetching jobs is refused, trying again every 0.01 s until somebody has mended that: "
        "this user may not do that: GRANT it"
    )
    assert first.exc_info is None
    assert "works again" in last.getMessage()


def test_an_outage_is_logged_once_and_counts(caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage("reading")
    with caplog.at_level(logging.WARNING):
        outage.over()
        delays = [outage.failed(OSError("x")) for _ in range(12)]
        assert outage.now
        assert outage.hopeless
        outage.over()
    assert not outage.now
    assert not outage.hopeless
    assert all(0.025 <= delay <= 5 for delay in delays)
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        "reading failed, trying again until it works",
        "reading works again after 12 failures",
    ]
    assert outage.errors == 12
