"""A connection that breaks at any step of a call, before the server has heard it or after it has done it: the call is
carried out once all the same, or says what it does not know; and no job is in two places or in none."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest
from pg_kit import connected
from pg_proxy import Proxy

from headrace import DuplicateJob, Job, LeaseLost, Queue, Unavailable, connect
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


def ack(line: Line, breaks: Callable[[], object]) -> None:
    before = line.queue.stats()
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


def settle(how: str, line: Line, breaks: Callable[[], object], arrives: bool) -> None:
    job = line.held()
    try:
        with breaks():
            getattr(line.queue, how)(job)
    except LeaseLost:
        assert arrives, "it had no reason to doubt"
    if how == "bury":
        assert [dead.id for dead in line.queue.take_dead(10)] == [job.id]
    else:
        found = line.queue.find(job.id)
        assert found is not None
        assert (found.attempt, found.state.name) == (1 if how == "nack" else 0, "READY")
        assert line.queue.cancel(job.id)


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
        line.queue.cancel(id)
    assert line.queue.find(id) is None


def replay(line: Line, breaks: Callable[[], object]) -> None:
    job = line.held()
    line.queue.bury(job)
    with breaks():
        line.queue.replay()
    assert line.queue.stats().dead == 0
    assert line.queue.cancel(job.id)


def forward(line: Line, breaks: Callable[[], object], arrives: bool) -> None:
    job = line.held()
    try:
        with breaks():
            line.queue.forward(job, line.tight)
    except LeaseLost:
        assert arrives
    assert line.queue.find(job.id) is None
    assert line.tight.cancel(job.id)


CALLS = {
    "enqueue": lambda line, breaks, arrives: put(line, line.queue, breaks),
    "enqueue near the limit": lambda line, breaks, arrives: put(line, line.tight, breaks),
    "ack": lambda line, breaks, arrives: ack(line, breaks),
    "ack of a lost lease": lambda line, breaks, arrives: ack_of_a_lost_lease(line, breaks),
    "extend": lambda line, breaks, arrives: extend(line, breaks),
    "nack": lambda line, breaks, arrives: settle("nack", line, breaks, arrives),
    "release": lambda line, breaks, arrives: settle("release", line, breaks, arrives),
    "bury": lambda line, breaks, arrives: settle("bury", line, breaks, arrives),
    "dequeue": take,
    "cancel": lambda line, breaks, arrives: cancel(line, breaks),
    "replay": lambda line, breaks, arrives: replay(line, breaks),
    "forward": forward,
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
            others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            ended = other.execute(f"SELECT count(pg_terminate_backend(pid, 5000)) {others}".encode()).fetchone()
        assert ended is not None
        assert ended[0] > 0
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
