"""Who sleeps is woken by whoever enqueues elsewhere, whatever befalls the server; and nobody is told anything while
all are busy. Everywhere here a handle would look by itself only every minute, and no test waits for so long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from pg_bouncer import Bouncer
from pg_databases import end_others
from pg_kit import connected, somebody_sleeps
from pg_proxy import Proxy
from pg_server import PrivateServer
from pg_url import url_of

from headrace import Job, Queue, QueueClosed, connect
from headrace.postgres import bell
from headrace.testing.clock import wait_until

LIMIT = 25.0


class Elsewhere:
    """A handle that sleeps, and one that shares nothing with it but the server, as in another process."""

    def __init__(self, dsn: str, **settings: Any) -> None:
        self.dsn = dsn
        self.here = connect(url_of(dsn, application_name="here"), poll=60, **settings)
        self.there = connect(url_of(dsn, application_name="there"), poll=60)
        self._threads = ThreadPoolExecutor(8)

    def sleeps(self, known: bool = True) -> Future[Job | None]:
        """Asleep for good: the server knows of it, so that nobody finds the job by a look of their own."""
        future = self._threads.submit(self.here.dequeue)  # which has no limit, so it must be woken
        if known:
            wait_until(lambda: somebody_sleeps(self.dsn), LIMIT)
        else:
            wait_until(lambda: bool(self.here.store.rooms.consumers.tickets), LIMIT)  # type: ignore[attr-defined]
        return future

    def close(self) -> None:
        self.here.close()
        self.there.close()
        self._threads.shutdown()


@pytest.fixture
def elsewhere() -> Iterator[Callable[..., Elsewhere]]:
    made: list[Elsewhere] = []

    def make(dsn: str, **settings: Any) -> Elsewhere:
        made.append(Elsewhere(dsn, **settings))
        return made[-1]

    yield make
    for each in made:
        each.close()


def woken(both: Elsewhere, id: str) -> None:
    sleeper = both.sleeps()
    both.there.enqueue(Job(id=id))
    job = sleeper.result(LIMIT)
    assert job is not None
    assert job.id == id
    both.here.ack(job)


def test_a_sleeper_is_woken_again_and_again(dsn: str, elsewhere: Callable[..., Elsewhere]) -> None:
    both = elsewhere(dsn)
    for number in range(5):
        woken(both, f"{number}")


def test_one_job_for_each_of_many_sleepers(dsn: str, elsewhere: Callable[..., Elsewhere]) -> None:
    """One is told, and tells the next: a batch of six for six who sleep in two handles."""
    both, beside = elsewhere(dsn), elsewhere(url_of(dsn, fallback_application_name="beside"))
    sleepers = [both.sleeps() for _ in range(3)] + [beside.sleeps() for _ in range(3)]
    both.there.enqueue_many([Job(id=f"{number}") for number in range(6)])
    taken = [sleeper.result(LIMIT) for sleeper in sleepers]
    assert sorted(job.id for job in taken if job) == [f"{number}" for number in range(6)]


def test_a_batch_rings_once_and_nobody_rings_while_all_are_busy(dsn: str, elsewhere: Callable[..., Elsewhere]) -> None:
    both = elsewhere(dsn)
    with connected(dsn) as ear:
        ear.execute('LISTEN "headrace_headrace"')
        both.there.enqueue_many([Job() for _ in range(100)])
        assert rings(ear) == 0
        both.here.ack_many(both.here.dequeue_many(100, 0))
        sleeper = both.sleeps()
        both.there.enqueue_many([Job() for _ in range(100)])
        assert rings(ear) == 1
        assert sleeper.result(LIMIT)
        both.here.ack_many(both.here.dequeue_many(100, 0))
        wait_until(lambda: not somebody_sleeps(dsn), LIMIT)  # awake for good
        both.there.enqueue(Job())
        assert rings(ear) == 0


def in_a_transaction(both: Elsewhere, job: Job) -> None:
    with psycopg.connect(both.dsn) as connection:
        both.there.within(connection).nack(job)


def end_of_a_lease(both: Elsewhere, job: Job) -> None:
    """Which nobody else knows to be so short."""
    both.there.extend(job, 0.01)
    wait_until(lambda: both.there.stats().expired_leases == 1, LIMIT)


def dead(both: Elsewhere, job: Job) -> None:
    both.there.bury(job)


def paused(both: Elsewhere, job: Job) -> None:
    both.there.pause()
    both.there.nack(job)


RETURNS: dict[str, tuple[Callable[[Elsewhere, Job], object], Callable[[Elsewhere, Job], object]]] = {
    "nack": (lambda both, job: None, lambda both, job: both.there.nack(job)),
    "nack with a delay": (lambda both, job: None, lambda both, job: both.there.nack(job, 0.1)),
    "nack within a transaction": (lambda both, job: None, in_a_transaction),
    "release": (lambda both, job: None, lambda both, job: both.there.release(job)),
    "release with a delay": (lambda both, job: None, lambda both, job: both.there.release(job, 0.1)),
    "the end of a lease": (lambda both, job: None, end_of_a_lease),
    "replay": (dead, lambda both, job: both.there.replay()),
    "resume": (paused, lambda both, job: both.there.resume()),
}
"""What is done with a job before somebody sleeps, and then."""


def rings(ear: psycopg.Connection[Any]) -> int:
    """Those of jobs, not those of who goes to sleep."""
    ear.execute("SELECT 1")
    return sum(not note.payload.startswith("free") for note in ear.notifies(timeout=0))


@pytest.mark.parametrize("how", RETURNS)
def test_a_job_that_comes_back_rings_once_for_who_sleeps_elsewhere(
    how: str, dsn: str, elsewhere: Callable[..., Elsewhere]
) -> None:
    before, then = RETURNS[how]
    both = elsewhere(dsn)
    both.there.enqueue(Job(id="a"))
    (job,) = both.there.dequeue_many(1, 0)
    before(both, job)
    with connected(dsn) as ear:
        sleeper = both.sleeps()
        ear.execute('LISTEN "headrace_headrace"')
        then(both, job)
        assert rings(ear) == 1
        found = sleeper.result(LIMIT)
        assert found is not None
        assert found.id == "a"


@pytest.mark.parametrize("how", [how for how in RETURNS if "transaction" not in how])
def test_a_job_that_comes_back_rings_for_nobody_where_nobody_sleeps(how: str, dsn: str) -> None:
    before, then = RETURNS[how]
    both = Elsewhere(dsn)
    both.there.enqueue(Job(id="a"))
    (job,) = both.there.dequeue_many(1, 0)
    before(both, job)
    with connected(dsn) as ear:
        ear.execute('LISTEN "headrace_headrace"')
        then(both, job)
        assert rings(ear) == 0
    both.close()


def test_a_sleeper_finds_jobs_also_while_one_commit_follows_the_other(
    dsn: str, elsewhere: Callable[..., Elsewhere]
) -> None:
    """Then the lock by which it would say that it sleeps is never free."""
    both = elsewhere(dsn)
    with connected(dsn) as busy:
        busy.execute("SELECT pg_advisory_lock_shared(%s)", [both.here.store.bell])  # type: ignore[attr-defined]
        for number in range(3):
            sleeper = both.sleeps(known=False)
            both.there.enqueue(Job(id=f"{number}"))
            job = sleeper.result(LIMIT)
            assert job is not None
            both.here.ack(job)
        assert not somebody_sleeps(dsn)
    woken(both, "when it is free again")


def test_a_listener_that_was_terminated_listens_again(dsn: str, elsewhere: Callable[..., Elsewhere]) -> None:
    """F20."""
    both = elsewhere(dsn)
    woken(both, "before")
    sleeper = both.sleeps()
    with connected(dsn) as admin:
        end_others(admin, "here")
        both.there.enqueue(Job(id="meanwhile"))
    job = sleeper.result(LIMIT)
    assert job is not None
    assert job.id == "meanwhile"
    woken(both, "after")


@pytest.mark.parametrize("how", ["immediate", "killed", "frozen"])
def test_whatever_befell_the_server_a_sleeper_is_woken_afterwards(
    how: str,
    private_server: Callable[..., PrivateServer],
    elsewhere: Callable[..., Elsewhere],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """F20. What came in meanwhile is found at once, and one line tells of the outage, one of its end."""
    monkeypatch.setattr(bell, "PROBE", 0.5)
    server = private_server()
    both = elsewhere(server.dsn(), patience=5)
    woken(both, "before")
    sleeper = both.sleeps()
    if how == "frozen":
        server.freeze()
        wait_until(lambda: "cannot be woken" in caplog.text, LIMIT)
        server.thaw()
    elif how == "killed":
        server.kill()
        server.start()
    else:
        server.restart("immediate")
    both.there.enqueue(Job(id="right after"))
    job = sleeper.result(LIMIT)
    assert job is not None
    woken(both, "after")
    for line in ("cannot be woken", "being woken works again"):
        mine = [record for record in caplog.records if line in record.getMessage()]
        assert 1 <= len(mine) <= 2, caplog.text  # each of the two handles may have a listener


def test_behind_a_pooler_it_looks_often_instead_and_says_so_once(
    dsn: str,
    bouncer: Callable[..., Bouncer],
    elsewhere: Callable[..., Elsewhere],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """F22. Several threads on two connections of the pooler; with the server's own address it hears again."""
    between = bouncer(dsn)
    deaf = connect(between.dsn, poll=60)
    there = connect(url_of(dsn, application_name="there"))
    with ThreadPoolExecutor(8) as threads:
        sleepers = [threads.submit(deaf.dequeue) for _ in range(4)]
        wait_until(lambda: "behind a pooler" in caplog.text, LIMIT)
        there.enqueue_many([Job(id=f"{number}") for number in range(4)])
        jobs = [sleeper.result(LIMIT) for sleeper in sleepers]
        assert sorted(job.id for job in jobs if job) == ["0", "1", "2", "3"]

        def work(number: int) -> list[str]:
            deaf.enqueue_many([Job(id=f"{number}-{each}") for each in range(50)])
            done = []
            while taken := deaf.dequeue_many(3, 0):
                deaf.ack_many(taken)
                done += [job.id for job in taken]
            return done

        done = [id for ids in threads.map(work, range(8)) for id in ids]
    deaf.ack_many([job for job in jobs if job])
    stats = deaf.stats()
    assert len(done) == len(set(done)) == 400
    assert (stats.acked, stats.ready, stats.inflight, stats.unaccounted) == (404, 0, 0, 0)
    assert sum("behind a pooler" in record.getMessage() for record in caplog.records) == 1
    with connected(between.dsn) as pooled:  # whoever else uses the pooler's sessions finds them as they were
        assert pooled.execute("SHOW enable_seqscan").fetchone() == ("on",)
    deaf.close()
    there.close()

    both = elsewhere(url_of(between.dsn, application_name=None), direct=dsn)
    both.dsn = dsn
    woken(both, "heard")


def test_closing_ends_a_sleep_and_the_last_handle_leaves_no_session(dsn: str) -> None:
    queue = connect(url_of(dsn, application_name="closed"), poll=60)
    asleep = threading.Event()

    def sleep(queue: Queue) -> None:
        asleep.set()
        with pytest.raises(QueueClosed):
            queue.dequeue()

    with ThreadPoolExecutor(4) as threads:
        sleeping = [threads.submit(sleep, queue) for _ in range(4)]
        asleep.wait(LIMIT)
        queue.close()
        for each in sleeping:
            each.result(LIMIT)
    mine = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'closed'"
    with connected(dsn) as watch:
        wait_until(lambda: watch.execute(mine).fetchone() == (0,), LIMIT)


def test_many_threads_share_few_connections(dsn: str, proxy: Callable[[str], Proxy]) -> None:
    """Each call waits for a connection that is free: 24 threads, 2 connections, and a network that cuts both."""
    between = proxy(dsn)
    queue = connect(between.dsn, connections=2)
    queue.enqueue_many([Job(id=f"{number}") for number in range(600)])
    done: list[str] = []

    def work() -> None:
        while taken := queue.dequeue_many(2, 0):
            queue.ack_many(taken)
            done.extend(job.id for job in taken)

    with ThreadPoolExecutor(24) as threads, connected(dsn) as watch:
        working = [threads.submit(work) for _ in range(24)]
        mine = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'headrace'"
        )
        found = watch.execute(mine).fetchone()
        assert found is not None
        assert found[0] <= 2
        for cut in range(1, 6):
            wait_until(lambda cut=cut: len(done) >= cut * 80, LIMIT)  # type: ignore[misc]
            between.cut()
        for each in working:
            each.result(LIMIT)
    assert len(done) == len(set(done))
    stats = queue.stats()
    assert stats.acked == len(done)
    assert stats.acked + stats.inflight == 600  # what was claimed for nobody comes when its lease is over
    assert stats.unaccounted == 0
    queue.close()


def test_a_queue_that_is_opened_again_and_again_is_rung_each_time(dsn: str) -> None:
    for number in range(12):
        with connect(dsn, poll=60.0) as queue, ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(queue.dequeue, 50.0)
            wait_until(lambda queue=queue: bool(queue.store.rooms.consumers.tickets), LIMIT)  # type: ignore[misc]
            with psycopg.connect(dsn) as connection:
                queue.within(connection).enqueue(Job(id=f"{number}"))
            job = waiting.result(20)
            assert job is not None
            assert job.id == f"{number}"
            queue.ack(job)


def test_handles_that_differ_in_their_patience_are_rung_by_one_bell(dsn: str) -> None:
    closed = connect(dsn, poll=60.0, patience=7.0)  # kept until the end: it is still known to be there
    closed.close()
    with connect(dsn, poll=60.0, patience=8.0) as queue, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(queue.dequeue, 50.0)
        wait_until(lambda: somebody_sleeps(dsn), LIMIT)
        with psycopg.connect(dsn) as connection:
            queue.within(connection).enqueue(Job(id="a"))
        job = waiting.result(LIMIT)
    assert job is not None
    assert closed.settings.queue == queue.settings.queue
