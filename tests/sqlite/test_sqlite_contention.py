"""F27, F28, F08, F09: many processes and threads on one file; nobody hears of a lock, nor takes what is another's."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import raw
from children import Child, listen, say, together
from sqlite_files import drain, lease, open_at

from headrace.errors import DuplicateJob, LeaseLost, Unavailable
from headrace.job import Job
from headrace.queue import Queue


def _produce(path: Path, seconds: float) -> int:
    with open_at(path, capacity=1_000_000) as queue:
        end, count = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            if count % 3:
                queue.enqueue(Job(b"x" * 200))
                count += 1
            else:
                queue.enqueue_many([Job(b"x" * 200) for _ in range(4)])
                count += 4
        return count


def _consume(path: Path, batch: int) -> int:
    """Until a job named "end" comes."""
    with open_at(path, capacity=1_000_000) as queue:
        count = 0
        while True:
            jobs = queue.dequeue_many(batch, timeout=20)
            queue.ack_many(jobs)
            count += sum(not job.id.startswith("end") for job in jobs)
            if any(job.id.startswith("end") for job in jobs):
                return count


def _hold(path: Path, begin: str, seconds: float) -> None:
    with closing(raw.connect(path)) as connection:
        connection.execute(begin)
        connection.execute("SELECT count(*) FROM headrace_jobs").fetchall()
        say("held")
        time.sleep(seconds)
        connection.execute("ROLLBACK")


def test_nobody_hears_of_a_lock_while_six_processes_work_one_reads_long_and_one_holds_the_lock(path: Path) -> None:
    """F27: what was enqueued is done, all of it, in spite of a dashboard's long read and a second of standstill."""
    open_at(path).close()
    reader = Child(_hold, path, "BEGIN", 2.5)
    reader.hear()
    producers = [Child(_produce, path, 2.5) for _ in range(3)]
    consumers = [Child(_consume, path, batch) for batch in (1, 5, 20)]
    holder = Child(_hold, path, "BEGIN IMMEDIATE", 1.0)
    holder.hear()
    enqueued = sum(producer.result() for producer in producers)
    holder.result()
    reader.result()
    with open_at(path, capacity=1_000_000) as queue:
        for number in range(3):
            ends = Job(id=f"end{number}")
            queue.enqueue(ends)
            while queue.find(ends.id) is not None:
                time.sleep(0.01)  # one end for each consumer: a batch must not take two
        assert sum(consumer.result() for consumer in consumers) == enqueued > 100
        stats = queue.stats()
        assert (stats.acked, stats.size, stats.ack_too_late) == (enqueued + 3, 0, 0)


def test_sixteen_threads_share_one_handle(path: Path) -> None:
    """F27: producers and consumers, no error and nothing left."""

    def produce(name: int) -> None:
        for number in range(30):
            queue.enqueue(Job(id=f"{name}-{number}"))

    def consume() -> None:
        while len(done) < 240:
            for job in queue.dequeue_many(3, timeout=0.02):
                queue.ack(job)
                done.append(job.id)

    def guarded(call: Callable[..., None], *args: int) -> None:
        try:
            call(*args)
        except BaseException as error:
            failed.append(error)

    done: list[str] = []
    failed: list[BaseException] = []
    with open_at(path) as queue:
        threads = [threading.Thread(target=guarded, args=(produce, name)) for name in range(8)]
        threads += [threading.Thread(target=guarded, args=(consume,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert not failed
        assert sorted(done) == sorted(f"{name}-{number}" for name in range(8) for number in range(30))
        assert queue.stats().size == 0


def test_a_lock_held_longer_than_the_patience_is_a_clear_error_in_bounded_time(path: Path) -> None:
    """F27: typed, retryable, and it says what to do; afterwards all goes on."""
    with open_at(path, busy_timeout=0.2) as queue:
        queue.enqueue(Job(id="a"))
        with closing(raw.connect(path)) as other:
            other.execute("BEGIN IMMEDIATE")
            begun = time.monotonic()
            with pytest.raises(
                Unavailable, match=r"jobs\.db: locked by another process for more than 0\.2 s; find who"
            ):
                queue.enqueue(Job(id="b"))
            assert 0.2 <= time.monotonic() - begun < 5
            with pytest.raises(Unavailable, match="locked"):
                queue.dequeue(timeout=0)
            assert queue.stats().ready == 1, "looking needs no lock"
            other.execute("ROLLBACK")
        assert [job.id for job in drain(queue)] == ["a"]
        queue.enqueue(Job(id="b"))
        drain(queue)


def test_opening_waits_for_a_lock_too(path: Path) -> None:
    open_at(path).close()
    holder = Child(_hold, path, "BEGIN IMMEDIATE", 0.3)
    holder.hear()
    with open_at(path, queue="another") as queue:
        queue.enqueue(Job())
        drain(queue)
    holder.result()


def _start_all(path: Path, witness: Path, batch: int) -> list[tuple[int, int, bool]]:
    """Claims until everything is started; (priority, number, delayed) in the order of the starts."""
    order = []
    with open_at(path) as queue, closing(sqlite3.connect(witness, timeout=30, isolation_level=None)) as starts:
        while jobs := queue.dequeue_many(batch, timeout=1.2):
            starts.execute("BEGIN IMMEDIATE")
            starts.executemany("INSERT INTO starts VALUES (?, ?)", [(job.id, job.attempt) for job in jobs])
            starts.execute("COMMIT")
            queue.ack_many(jobs)
            order += [(job.priority, int(job.id), job.payload == b"delayed") for job in jobs]
    return order


def test_eight_processes_start_each_job_once_and_in_order(path: Path, tmp_path: Path) -> None:
    """F28: batches of 1, 7 and 50; a tenth of the jobs is promoted meanwhile. The witness is a table of its own."""
    count = 2000
    witness = tmp_path / "witness.sqlite"
    with closing(sqlite3.connect(witness)) as starts:
        starts.execute("CREATE TABLE starts (id TEXT, attempt INTEGER, UNIQUE (id, attempt))")
    with open_at(path) as queue:
        queue.enqueue_many(
            [
                Job(b"delayed" if n % 10 == 0 else b"", str(n), priority=n % 3, delay=random.random() * (n % 10 == 0))
                for n in range(count)
            ]
        )
    orders = together([(_start_all, (path, witness, batch)) for batch in (1, 7, 50, 1, 7, 50, 7, 50)])
    with closing(sqlite3.connect(witness)) as starts:
        started = starts.execute("SELECT id, attempt FROM starts").fetchall()
    assert Counter(started) == Counter((str(n), 1) for n in range(count))
    for order in orders:
        for priority in range(3):
            mine = [number for rank, number, delayed in order if rank == priority and not delayed]
            assert mine == sorted(mine), "first come, first served among equals"
        ranks = [rank for rank, _, delayed in order if not delayed]
        assert ranks == sorted(ranks, reverse=True), "the higher priority first"


def _race(path: Path, rounds: int) -> list[str]:
    """Which rounds this caller won."""
    won = []
    with open_at(path) as queue:
        for number in range(rounds):
            say("ready")
            listen()
            try:
                queue.enqueue(Job(id=f"key{number}"))
                won.append(f"key{number}")
            except DuplicateJob:
                pass
    return won


def test_of_eight_processes_that_enqueue_one_key_one_wins(path: Path) -> None:
    """F08: and each of the others is told."""
    racers = [Child(_race, path, 25) for _ in range(8)]
    for _ in range(25):
        for racer in racers:
            racer.hear()
        for racer in racers:
            racer.tell()
    won = Counter(key for racer in racers for key in racer.result())
    assert won == Counter(f"key{n}" for n in range(25))
    with open_at(path) as queue:
        assert len(drain(queue)) == 25


def _bury(queue: Queue) -> None:
    queue.bury(lease(queue), error="no")


def _purge(queue: Queue) -> None:
    _bury(queue)
    assert len(queue.take_dead(1)) == 1


def _expire(queue: Queue) -> None:
    """A worker that is gone, then another that finishes."""
    queue.extend(lease(queue), 0.000001)
    queue.ack(lease(queue, timeout=5))


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda queue: queue.ack(lease(queue)), id="ack"),
        pytest.param(lambda queue: queue.cancel(lease(queue)), id="cancel_running"),
        pytest.param(lambda queue: queue.cancel("key"), id="cancel_waiting"),
        pytest.param(lambda queue: [queue.nack(lease(queue)) for _ in range(2)], id="dead"),
        pytest.param(_bury, id="bury"),
        pytest.param(_expire, id="expire"),
        pytest.param(_purge, id="purge"),
    ],
)
def test_a_key_is_free_again_however_its_job_ends(path: Path, end: Callable[[Queue], object]) -> None:
    """F08."""
    with open_at(path, max_attempts=2) as queue:
        for _ in range(2):
            queue.enqueue(Job(id="key"))
            with pytest.raises(DuplicateJob):
                queue.enqueue(Job(id="key"))
            end(queue)
        queue.enqueue(Job(id="key"))
        assert len(drain(queue)) == 1


def _cancel_all(path: Path, count: int) -> list[str]:
    ids = [f"job{n}" for n in range(count)]
    random.shuffle(ids)
    with open_at(path) as queue:
        return [id for id in ids if queue.cancel(id)]


def _run_all(path: Path) -> tuple[list[str], int]:
    started, lost = [], 0
    with open_at(path) as queue:
        while jobs := queue.dequeue_many(3, timeout=0.3):
            for job in jobs:
                started.append(job.id)
                try:
                    queue.ack(job)
                except LeaseLost:
                    lost += 1
    return started, lost


def test_a_job_is_started_or_cancelled_never_both(path: Path) -> None:
    """F09: one process cancels every id in random order while two run them."""
    count = 400
    with open_at(path) as queue:
        queue.enqueue_many([Job(id=f"job{n}", delay=0.1 * (n % 4 == 0)) for n in range(count)])
    cancelled, *ran = together([(_cancel_all, (path, count)), (_run_all, (path,)), (_run_all, (path,))])
    started = [id for ids, _ in ran for id in ids]
    assert Counter(started) + Counter(cancelled) == Counter(f"job{n}" for n in range(count))
    assert [lost for _, lost in ran] == [0, 0]
