"""A connection that breaks at any step of a call, before the server has heard it or after it has done it: the call is
carried out once all the same, or says what it does not know; and no job is in two places or in none."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import psycopg
import pytest
from pg_databases import end_others
from pg_kit import connected
from pg_proxy import Proxy

from headrace import DuplicateJob, Job, LeaseLost, Queue, State, Unavailable, connect
from headrace.postgres import once
from headrace.postgres.entrance import PART
from headrace.postgres.once import committed
from headrace.testing import VirtualClock
from headrace.testing.clock import wait_until

number = itertools.count()


class Line:
    """A queue behind a network that breaks where it is told to, and nobody else on it."""

    def __init__(self, dsn: str, proxy: Proxy) -> None:
        self.dsn = dsn
        self.proxy = proxy
        self.queues: list[Queue] = []
        self.queue = self.open(queue="q", capacity=100_000)
        self.tight = self.open(queue="tight", capacity=1_000)
        """Always so near its limit that enqueueing takes a lock and several statements."""

    def open(self, **settings: object) -> Queue:
        self.queues.append(connect(self.proxy.dsn, clock=VirtualClock(), **settings))
        return self.queues[-1]

    @contextmanager
    def broken_at(self, step: int, arrives: bool) -> Iterator[None]:
        self.proxy.break_at(step, arrives)
        try:
            yield
        finally:
            self.proxy.resume()

    def check(self) -> None:
        """Nothing is lost, doubled, or in two places at once, whichever the queue."""
        with connected(self.dsn) as database:
            for queue in self.queues:
                stats = queue.stats()
                mine = "queue = (SELECT queue FROM headrace.queues WHERE name = %s)"
                found = database.execute(
                    f"""SELECT count(*) FILTER (WHERE NOT delayed AND until = 0),
                        count(*) FILTER (WHERE delayed AND until = 0), count(*) FILTER (WHERE until > 0 AND NOT delayed)
                        FROM headrace.jobs WHERE {mine}""".encode(),  # noqa: S608
                    [queue.settings.queue],
                ).fetchone()
                assert found == (stats.ready, stats.delayed, stats.inflight), queue
                dead = database.execute(
                    f"SELECT count(*) FROM headrace.dead WHERE {mine}".encode(),  # noqa: S608
                    [queue.settings.queue],
                )
                assert dead.fetchone() == (stats.dead,)
                assert stats.unaccounted == 0

    def new(self, queue: Queue | None = None, **options: object) -> str:
        id = f"job-{next(number)}"
        (queue or self.queue).enqueue(Job(id=id, payload=b"x", **options))
        return id

    def held(self) -> Job:
        """A job of ours in flight, and nothing ready beside it."""
        self.new()
        (job,) = self.queue.dequeue_many(1000, 0)
        return job

    def clear(self, job: Job) -> None:
        """So that the next round finds nothing ready."""
        self.queue.cancel(job.id)


@pytest.fixture
def line(dsn: str, proxy: Callable[[str], Proxy]) -> Iterator[Line]:
    made = Line(dsn, proxy(dsn))
    yield made
    made.check()
    for queue in made.queues:
        queue.close()


def put(line: Line, queue: Queue, breaks: Callable[[], object]) -> None:
    before = queue.stats().enqueued
    jobs = [Job(id=f"job-{next(number)}", payload=bytes([n]), delay=n * 60) for n in range(3)]
    with breaks():
        queue.enqueue_many(jobs)
    assert [line_.id for line_ in map(queue.find, [job.id for job in jobs]) if line_] == [job.id for job in jobs]
    assert queue.stats().enqueued == before + 3
    for job in jobs:
        with pytest.raises(DuplicateJob):
            queue.enqueue(job)
        assert queue.cancel(job.id)


def put_in_parts(line: Line, breaks: Callable[[], object]) -> None:
    before = line.queue.stats().enqueued
    jobs = [Job(id=f"job-{next(number)}") for _ in range(2 * PART + 1)]
    with breaks():
        line.queue.enqueue_many(jobs)
    assert line.queue.stats().enqueued == before + len(jobs)
    with pytest.raises(DuplicateJob):
        line.queue.enqueue(jobs[-1])
    taken = line.queue.dequeue_many(len(jobs), 0)
    assert [job.id for job in taken] == [job.id for job in jobs]
    line.queue.ack_many(taken)


def ack(line: Line, breaks: Callable[[], object], at_once: bool) -> None:
    before = line.queue.stats()
    if at_once:
        for _ in range(3):
            line.new()
        jobs = line.queue.dequeue_many(3, 0)
    else:
        jobs = [line.held() for _ in range(3)]
    with breaks():
        line.queue.ack_many(jobs)
    after = line.queue.stats()
    assert (after.acked, after.ack_too_late) == (before.acked + 3, before.ack_too_late)
    with pytest.raises(LeaseLost):
        line.queue.ack(jobs[0])


def ack_of_a_lost_lease(line: Line, breaks: Callable[[], object]) -> None:
    """What is there under another fence is not taken for what this ack has done."""
    lost, held = line.held(), line.held()
    line.queue.nack(lost)
    line.queue.dequeue_many(1, 0)
    with breaks(), pytest.raises(LeaseLost) as raised:
        line.queue.ack_many([lost, held])
    assert list(raised.value.jobs) == [lost]
    assert line.queue.stats().inflight == 1
    line.clear(lost)
    (job,) = [each for each in [line.queue.find(lost.id)] if each]
    line.queue.ack(job)


def extend(line: Line, breaks: Callable[[], object]) -> None:
    job = line.held()
    with breaks():
        longer = line.queue.extend(job, 600)
    line.queue.ack(longer)


def settle(how: str, line: Line, breaks: Callable[[], object]) -> None:
    before = line.queue.stats().ack_too_late
    job = line.held()
    with breaks():
        getattr(line.queue, how)(job)
    assert line.queue.stats().ack_too_late == before
    if how == "bury":
        assert [dead.id for dead in line.queue.take_dead(10)] == [job.id]
    else:
        found = line.queue.find(job.id)
        assert found is not None
        assert (found.attempt, found.state.name) == (1 if how == "nack" else 0, "READY")
        assert line.queue.cancel(job.id)


def last_nack(line: Line, breaks: Callable[[], object]) -> None:
    line.new(max_attempts=1)
    (job,) = line.queue.dequeue_many(1000, 0)
    with breaks():
        line.queue.nack(job)
    assert [dead.id for dead in line.queue.take_dead(10)] == [job.id]


def release_many(line: Line, breaks: Callable[[], object]) -> None:
    """The lost one among them is named, and it alone."""
    lost, held = line.held(), line.held()
    line.queue.nack(lost)
    (now,) = line.queue.dequeue_many(1, 0)
    with breaks(), pytest.raises(LeaseLost) as raised:
        line.queue.release_many([lost, held], 60)
    assert list(raised.value.jobs) == [lost]
    line.queue.ack(now)
    assert line.queue.cancel(held.id)


def abandon(line: Line, breaks: Callable[[], object]) -> None:
    job = line.held()
    with breaks():
        assert line.queue.cancel(job)
    assert line.queue.find(job.id) is None


def take(line: Line, breaks: Callable[[], object], arrives: bool) -> None:
    line.new()
    with breaks():
        taken = line.queue.dequeue_many(10, 0)
    if taken:
        line.queue.ack(taken[0])
    else:  # leased for nobody: it comes again when the lease is over
        assert arrives
        line.queue.settings.clock.advance(line.queue.settings.lease + 1)  # type: ignore[attr-defined]
        (job,) = line.queue.dequeue_many(10, 0)
        line.queue.ack(job)


def cancel(line: Line, breaks: Callable[[], object]) -> None:
    id = line.new()
    with breaks():
        assert line.queue.cancel(id)
    assert line.queue.find(id) is None


def replay(line: Line, breaks: Callable[[], object]) -> None:
    job = line.held()
    line.queue.bury(job)
    with breaks():
        assert line.queue.replay() == 1
    assert line.queue.stats().dead == 0
    assert line.queue.cancel(job.id)


def take_dead(line: Line, breaks: Callable[[], object]) -> None:
    ids = [line.held().id for _ in range(3)]
    for id in ids:
        line.queue.bury(line.queue.find(id))  # type: ignore[arg-type]
    with breaks():
        taken = line.queue.take_dead(2)
    assert [job.id for job in taken] == ids[:2]
    assert [job.id for job in line.queue.take_dead(10)] == ids[2:]


def forward(line: Line, breaks: Callable[[], object]) -> None:
    job = line.held()
    with breaks():
        line.queue.forward(job, line.tight)
    assert line.queue.find(job.id) is None
    assert line.tight.cancel(job.id)


CALLS = {
    "enqueue": lambda line, breaks, arrives: put(line, line.queue, breaks),
    "enqueue near the limit": lambda line, breaks, arrives: put(line, line.tight, breaks),
    "enqueue in parts": lambda line, breaks, arrives: put_in_parts(line, breaks),
    "ack of one claim": lambda line, breaks, arrives: ack(line, breaks, at_once=True),
    "ack of several claims": lambda line, breaks, arrives: ack(line, breaks, at_once=False),
    "ack of a lost lease": lambda line, breaks, arrives: ack_of_a_lost_lease(line, breaks),
    "extend": lambda line, breaks, arrives: extend(line, breaks),
    "nack": lambda line, breaks, arrives: settle("nack", line, breaks),
    "nack of the last attempt": lambda line, breaks, arrives: last_nack(line, breaks),
    "release": lambda line, breaks, arrives: settle("release", line, breaks),
    "release of several": lambda line, breaks, arrives: release_many(line, breaks),
    "bury": lambda line, breaks, arrives: settle("bury", line, breaks),
    "cancel of a leased one": lambda line, breaks, arrives: abandon(line, breaks),
    "dequeue": take,
    "cancel": lambda line, breaks, arrives: cancel(line, breaks),
    "replay": lambda line, breaks, arrives: replay(line, breaks),
    "take_dead": lambda line, breaks, arrives: take_dead(line, breaks),
    "forward": lambda line, breaks, arrives: forward(line, breaks),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_whose_connection_breaks_at_any_step_is_carried_out_once(call: str, line: Line) -> None:
    """F05, F21. From the first thing that it sends to the last, lost on the way there or on the way back."""
    act = CALLS[call]
    for arrives in (False, True):
        for step in range(1, 50):
            sent = 0

            @contextmanager
            def breaks(step: int = step, arrives: bool = arrives) -> Iterator[None]:
                nonlocal sent
                before = line.proxy.requests
                with line.broken_at(step, arrives):
                    try:
                        yield
                    finally:
                        sent = line.proxy.requests - before

            act(line, breaks, arrives)
            line.check()
            if sent < step:
                assert step > 1
                break
        else:
            raise AssertionError("it never came through unharmed")


def killed_in_forward(line: Line, queue: Queue, breaks: Callable[[], object]) -> None:
    job = line.held()
    with breaks():
        queue.forward(job, line.tight)  # type: ignore[attr-defined]
    here, there = line.queue.find(job.id), line.tight.find(job.id)
    assert (here is None) is not (there is None)
    if here is None:
        assert line.tight.cancel(job.id)
    else:
        line.queue.ack(job)


def killed_in_replay(line: Line, queue: Queue, breaks: Callable[[], object]) -> None:
    jobs = [line.held(), line.held()]
    for job in jobs:
        line.queue.bury(job)
    with breaks():
        queue.replay()
    found = [line.queue.find(job.id) for job in jobs]
    assert len({each.state for each in found if each}) == 1
    line.queue.replay()
    assert all(line.queue.cancel(job.id) for job in jobs)


def killed_in_extend(line: Line, queue: Queue, breaks: Callable[[], object]) -> None:
    job = line.held()
    with breaks():
        queue.extend(job, 600)
    found = line.queue.find(job.id)
    assert found is not None
    assert (found.state, found.token) == (State.INFLIGHT, job.token)
    line.queue.ack(job)


@pytest.mark.parametrize("call", [killed_in_forward, killed_in_replay, killed_in_extend])
def test_a_call_whose_process_dies_at_any_step_was_carried_out_as_a_whole_or_not_at_all(
    call: Callable[..., None], line: Line
) -> None:
    """F01, F05. What is killed tries no second time."""
    queue = line.open(queue="q", capacity=100_000, patience=0.0)
    for arrives in (False, True):
        for step in range(1, 50):
            died = []

            @contextmanager
            def breaks(step: int = step, arrives: bool = arrives, died: list[Unavailable] = died) -> Iterator[None]:
                queue.find("nobody")  # it has a connection
                with line.broken_at(step, arrives):
                    try:
                        yield
                    except Unavailable as error:
                        died.append(error)

            call(line, queue, breaks)
            line.check()
            if not died:
                assert step > 1
                break
        else:
            raise AssertionError("it never came through unharmed")


class Settling:
    """A job that is settled through a network, and another way to its queue."""

    def __init__(self, dsn: str, proxy: Proxy) -> None:
        self.proxy = proxy
        self.clock = VirtualClock()
        self.here = connect(proxy.dsn, clock=self.clock, connections=1)
        self.there = connect(dsn, clock=self.clock)
        self.over = self.there.settings.lease + 1

    def claimed(self) -> Job:
        (job,) = self.there.dequeue_many(10, 0)
        return job

    def settle(self, how: str, job: Job, meanwhile: Callable[[], object]) -> None:
        """It is carried out but not answered; then comes what others do ``meanwhile``, and only then a second try."""
        self.here.stats()  # moves what is due
        self.proxy.break_at(3, arrives=True, alone=False)  # BEGIN, the statement, COMMIT
        with ThreadPoolExecutor(1) as beside:
            call = beside.submit(getattr(self.here, how), job)
            wait_until(lambda: not self.proxy.listens, 10.0)
            meanwhile()
            self.proxy.resume()
            call.result(20)


@pytest.fixture
def settling(dsn: str, proxy: Callable[[str], Proxy]) -> Iterator[Settling]:
    made = Settling(dsn, proxy(dsn))
    yield made
    assert made.there.stats().unaccounted == 0
    made.here.close()
    made.there.close()


@pytest.mark.parametrize("how", ["nack", "release"])
@pytest.mark.parametrize("meanwhile", ["nothing", "the lease is over", "claimed", "claimed and lost", "done"])
def test_a_lost_answer_is_no_lost_lease_whatever_others_did_with_the_job_meanwhile(
    how: str, meanwhile: str, settling: Settling
) -> None:
    """F05, F21."""
    settling.there.enqueue(Job(id="a"))
    job = settling.claimed()

    def others() -> None:
        if meanwhile == "the lease is over":
            settling.clock.advance(settling.over)
        elif meanwhile != "nothing":
            anew = settling.claimed()
            assert anew.attempt == (2 if how == "nack" else 1)
            if meanwhile == "done":
                settling.there.ack(anew)
            elif meanwhile == "claimed and lost":
                settling.clock.advance(settling.over)
                settling.there.stats()

    settling.settle(how, job, others)
    assert settling.there.stats().ack_too_late == 0


def test_a_lost_answer_is_no_lost_lease_though_the_dead_letter_is_taken_meanwhile(settling: Settling) -> None:
    settling.there.enqueue(Job(id="a"))
    settling.settle("bury", settling.claimed(), lambda: settling.there.take_dead(1))
    assert settling.there.stats().ack_too_late == 0


@pytest.mark.parametrize("how", ["nack", "release", "bury"])
@pytest.mark.parametrize("before", ["over", "claimed", "done", "given back"])
def test_a_lease_that_was_lost_before_the_first_try_is_lost_on_the_second_and_counted_once(
    how: str, before: str, settling: Settling
) -> None:
    """F02."""
    settling.there.enqueue(Job(id="a"))
    job = settling.claimed()
    if before == "given back":
        settling.there.nack(job)
    else:
        settling.clock.advance(settling.over)
        settling.there.stats()
    if before in ("claimed", "done"):
        anew = settling.claimed()
    if before == "done":
        settling.there.ack(anew)
    with pytest.raises(LeaseLost):
        settling.settle(how, job, lambda: None)
    assert settling.there.stats().ack_too_late == 1


def test_a_transaction_that_the_server_never_heard_of_is_none_that_was_committed(dsn: str) -> None:
    """F21. As on a standby that took over too early."""
    with connected(dsn) as connection:
        row = connection.execute("SELECT txid_current()").fetchone()
        assert row is not None
        assert committed(connection, row[0])
        assert not committed(connection, row[0] + 1_000_000)


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_transaction_under_way_is_waited_for(end: str, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with connected(dsn) as connection, psycopg.connect(dsn) as other:
        row = other.execute("SELECT txid_current()").fetchone()
        assert row is not None
        monkeypatch.setattr(once, "time", SimpleNamespace(sleep=lambda seconds: getattr(other, end)()))
        assert committed(connection, row[0]) is (end == "commit")


@pytest.mark.parametrize("settle", ["ack_many", "release_many"])
def test_of_a_job_that_is_given_under_a_lost_lease_too_the_lost_one_is_named(settle: str, line: Line) -> None:
    """F02."""
    lost = line.held()
    line.queue.nack(lost)
    (held,) = line.queue.dequeue_many(1, 0)
    with pytest.raises(LeaseLost) as raised:
        getattr(line.queue, settle)([lost, held, held])
    assert list(raised.value.jobs) == [lost, held]
    stats = line.queue.stats()
    assert (stats.inflight, stats.ack_too_late) == (0, 2)
    line.clear(held)


def test_a_connection_that_the_server_closed_while_it_idled_is_replaced(dsn: str) -> None:
    """F20."""
    queue = connect(dsn, clock=VirtualClock())
    for round in range(3):
        with connected(dsn) as other:
            assert end_others(other) > 0
        queue.enqueue(Job(id=f"{round}"))
    assert queue.stats().enqueued == 3
    queue.close()


def test_a_deadlock_is_tried_again(dsn: str) -> None:
    """F24. Ours holds the first job and waits for the second; a stranger the other way round."""
    queue = connect(dsn, clock=VirtualClock())
    queue.enqueue_many([Job(id="a"), Job(id="b")])
    jobs = queue.dequeue_many(2, 0)
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    with connected(dsn) as stranger, connected(dsn) as watch:
        stranger.execute("SET deadlock_timeout = '60s'")  # so that ours notices
        with ThreadPoolExecutor(1) as beside:
            with stranger.transaction():
                stranger.execute("SELECT FROM headrace.jobs WHERE id = 'b' FOR UPDATE")
                acking = beside.submit(queue.ack_many, jobs)
                wait_until(lambda: watch.execute(waiting).fetchone() == (1,), 10.0)
                stranger.execute("SELECT FROM headrace.jobs WHERE id = 'a' FOR UPDATE")
            acking.result(20)
    assert queue.stats().acked == 2
    queue.close()


def test_a_call_that_was_given_up_does_not_happen_later(dsn: str) -> None:
    """F05, F21. Behind a lock that lasts longer than its patience; who finds all connections taken is told so."""
    queue = connect(dsn, clock=VirtualClock(), patience=1.0, connections=1)
    queue.stats()
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    with connected(dsn) as watch, ThreadPoolExecutor(1) as beside, psycopg.connect(dsn) as stranger:
        stranger.execute("LOCK TABLE headrace.jobs")
        first = beside.submit(queue.enqueue, Job(id="first"))
        wait_until(lambda: watch.execute(waiting).fetchone() == (1,), 10.0)
        with pytest.raises(Unavailable, match="all 1 connections of this process are busy"):
            queue.enqueue(Job(id="second"))
        with pytest.raises(Unavailable, match=r"cancelled the step, for 1 s now"):
            first.result(20)
        assert watch.execute(waiting).fetchone() == (0,)
    assert (queue.find("first"), queue.find("second"), queue.stats().enqueued) == (None, None, 0)
    queue.enqueue(Job(id="first"))
    queue.close()
