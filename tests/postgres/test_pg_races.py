"""Many processes and threads on one database, doing everything at once: each job is somewhere, once, and the figures
say where."""

from __future__ import annotations

import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest
from children import together
from pg_kit import connected

from headrace import DuplicateJob, Job, LeaseLost, connect
from headrace.postgres import hint
from headrace.testing.clock import wait_until

THREADS = 3


def check(dsn: str) -> Any:
    """The figures of the queue, when they agree with its rows; all of them added up by many at once or by nobody."""
    with closing(connect(dsn)) as queue, connected(dsn) as database:
        stats = queue.stats()
        found = database.execute(
            "SELECT count(*) FILTER (WHERE NOT delayed AND until = 0), count(*) FILTER (WHERE delayed AND until = 0),"
            " count(*) FILTER (WHERE until > 0), (SELECT count(*) FROM headrace.dead) FROM headrace.jobs"
        ).fetchone()
    assert found == (stats.ready, stats.delayed, stats.inflight, stats.dead)
    assert stats.unaccounted == 0
    return stats


def in_threads(call: Any, dsn: str, *args: Any, **settings: Any) -> list[Any]:
    """In a child: ``call(queue, dice, …)`` in some threads of one handle."""
    with closing(connect(dsn, **settings)) as queue, ThreadPoolExecutor(THREADS) as threads:
        jobs = [threads.submit(call, queue, random.Random(f"{args}{number}"), *args) for number in range(THREADS)]
        return [job.result() for job in jobs]


def consume(queue: Any, dice: random.Random, total: int, number: int) -> list[tuple[str, str, int, str]]:
    """Claim, and settle in any way, until so many have come to an end; (id, how, fence, answer) of each claim. Every
    other process finds all looks from the front of the line dear."""
    if number % 2:
        hint.DEAR = -1
    seen = []
    while True:
        taken = queue.dequeue_many(dice.randint(1, 5), 0)
        for job in taken:
            how = dice.choice(["ack"] * 6 + ["nack", "release", "bury"])
            try:
                getattr(queue, how)(job)
                answer = "held"
            except LeaseLost:
                answer = "lost"
            seen.append((job.id, how, job.fence, answer))
        if not taken:
            stats = queue.stats()
            if stats.dead:
                queue.replay(dice.randint(1, 20))
            elif stats.enqueued >= total and not stats.ready + stats.delayed + stats.inflight:
                return seen


def produce(queue: Any, dice: random.Random, total: int, number: int) -> list[tuple[str, str, int, str]]:
    """Put in jobs of any priority, some delayed; cancel, pause and resume now and then."""
    seen = []
    share = total // THREADS
    left = [f"{number}-{dice.random()}" for _ in range(share)]
    while left:
        batch, left = left[:20], left[20:]
        delays = [dice.choice([0, 0, 0, 0.02]) for _ in batch]
        queue.enqueue_many(
            [
                Job(id=id, delay=delay, priority=dice.randint(-1, 1), max_attempts=50)
                for id, delay in zip(batch, delays, strict=True)
            ]
        )
        for id in dice.sample(batch, 2):
            if queue.cancel(id):
                seen.append((id, "cancelled", 0, "held"))
        if dice.random() < 0.05:
            queue.pause()
            queue.resume()
    return seen


def test_whatever_many_processes_do_at_once_each_job_is_claimed_once_and_ends_once(dsn: str) -> None:
    """F02, F08, F09. With a snapshot left open, so that dead rows stay in the way of every claim."""
    total = 1_200
    connect(dsn).close()
    with psycopg.connect(dsn) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM headrace.jobs")
        calls: list[Any] = [(in_threads, (consume, dsn, total, number)) for number in range(4)]
        calls.append((in_threads, (produce, dsn, total, 9)))
        results = together(calls, limit=60.0)
    events = [event for result in results for thread in result for event in thread]
    claims = [(id, fence) for id, how, fence, _ in events if how != "cancelled"]
    assert len(claims) == len(set(claims))
    ends = Counter(id for id, how, _, answer in events if answer == "held" and how in ("ack", "cancelled"))
    stats = check(dsn)
    # One that was cancelled while it was leased ends by whatever its owner does with it, and nobody is told here.
    assert max(ends.values()) == 1
    assert stats.acked == sum(how == "ack" and answer == "held" for _, how, _, answer in events)
    assert stats.acked + stats.cancelled == stats.enqueued == total
    assert stats.ready + stats.delayed + stats.inflight + stats.dead == 0


def hurry(queue: Any, dice: random.Random, total: int, _: int) -> Counter[str]:
    """Settle just when the lease ends."""
    said = Counter[str]()
    while True:
        for job in queue.dequeue_many(2, 0):
            time.sleep(dice.uniform(0.0, 0.05))
            try:
                queue.ack(job)
                said["acked"] += 1
            except LeaseLost:
                said["lost"] += 1
        stats = queue.stats()
        if stats.acked == total:
            return said


def test_an_ack_at_the_very_end_of_a_lease_counts_or_is_refused_and_never_both(dsn: str) -> None:
    """F02. Leases of 25 ms, acks after 0 to 50, and eight handles that all look for what is over."""
    total = 300
    with closing(connect(dsn)) as queue:
        queue.enqueue_many([Job(max_attempts=1_000) for _ in range(total)])
    results = together([(lease_of_25_ms, (dsn, total, number)) for number in range(4)], limit=60.0)
    said = sum((counter for result in results for counter in result), Counter[str]())
    stats = check(dsn)
    assert stats.acked == said["acked"] == total
    assert stats.ack_too_late == said["lost"] > 0
    assert stats.expired_leases >= said["lost"]


def lease_of_25_ms(dsn: str, total: int, number: int) -> list[Any]:
    return in_threads(hurry, dsn, total, number, lease=0.025)


def sweep(dsn: str) -> tuple[int, int]:
    with closing(connect(dsn)) as queue:
        taken = queue.dequeue_many(50, 0)
        queue.ack_many(taken)
        return len(taken), len({job.id for job in taken})


def test_what_is_due_is_moved_once_however_many_come_to_move_it(dsn: str) -> None:
    """Delayed jobs, leases that are over, and figures to add up; eight processes find all of it at once."""
    with closing(connect(dsn, lease=0.05)) as queue:
        for number in range(100):
            queue.enqueue(Job(id=f"leased-{number}", max_attempts=1 + number % 2))
        queue.dequeue_many(100, 0)
        queue.enqueue_many([Job(id=f"delayed-{number}", delay=0.05) for number in range(500)])
        end = time.monotonic() + 0.06
        wait_until(lambda: time.monotonic() > end, 5.0)
    results = together([(sweep, (dsn,)) for _ in range(8)], limit=60.0)
    stats = check(dsn)
    assert (stats.delayed, stats.inflight, stats.expired_leases, stats.dead) == (0, 0, 100, 50)
    assert stats.acked == sum(count for count, _ in results)
    assert stats.ready == 550 - stats.acked


def win(dsn: str, rounds: int) -> list[int]:
    with closing(connect(dsn)) as queue:
        won = []
        for number in range(rounds):
            try:
                queue.enqueue_many([Job(id=f"{number}"), Job(id=f"{number}b")])
                won.append(number)
            except DuplicateJob:
                pass
        return won


def test_of_eight_processes_that_enqueue_one_id_one_wins_each_time(dsn: str) -> None:
    """F08. In batches, of which nothing is stored where one of them is there."""
    connect(dsn).close()
    won = together([(win, (dsn, 100)) for _ in range(8)], limit=60.0)
    assert sorted(number for numbers in won for number in numbers) == list(range(100))
    assert check(dsn).enqueued == 200


def test_an_id_that_is_replayed_while_somebody_enqueues_it_is_there_once(dsn: str) -> None:
    """F08. The other dead letters come back all the same."""
    with closing(connect(dsn)) as queue, ThreadPoolExecutor(1) as beside, connected(dsn) as watch:
        queue.enqueue_many([Job(id=id) for id in "xyz"])
        for job in queue.dequeue_many(3, 0):
            queue.bury(job)
        with psycopg.connect(dsn) as stranger:
            queue.within(stranger).enqueue(Job(id="y", payload=b"theirs"))
            replaying = beside.submit(queue.replay)
            waiting = (
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
            wait_until(lambda: watch.execute(waiting).fetchone() == (1,), 10.0)
        assert replaying.result(20) == 2
        assert [job.id for job in queue.dead()] == ["y"]
        assert sorted((job.id, job.payload) for job in queue.dequeue_many(9, 0)) == [
            ("x", b""),
            ("y", b"theirs"),
            ("z", b""),
        ]
    check(dsn)


@pytest.mark.parametrize("level", ["serializable", "repeatable read"])
def test_another_isolation_level_by_default_changes_nothing(level: str, dsn: str) -> None:
    """F24. Neither for sessions of ours, nor where a pooler hands out sessions of its own."""
    connect(dsn).close()
    with connected(dsn) as owner:
        owner.execute(f"ALTER DATABASE {owner.info.dbname} SET default_transaction_isolation = '{level}'".encode())
    total = 300
    calls: list[Any] = [(in_threads, (consume, dsn, total, number)) for number in range(2)]
    calls.append((in_threads, (produce, dsn, total, 9)))
    together(calls, limit=60.0)
    stats = check(dsn)
    assert stats.acked + stats.cancelled == total
