"""Many at once: every job exactly once, every id once, and no cancellation that ran after all."""

from __future__ import annotations

import random
import threading
from collections import Counter

import pytest

from ...errors import DuplicateJob, LeaseLost, QueueClosed
from ...job import Job
from ..bench import Bench

THREADS = 16


class Threads:
    jobs = 4000
    id_rounds = 100

    @pytest.mark.parametrize("batches", [(1,), (1, 7, 50)], ids=["one by one", "in batches"])
    def test_every_job_is_claimed_exactly_once(self, bench: Bench, batches: tuple[int, ...]) -> None:
        plain = bench.plain(capacity=self.jobs, lease=3600.0)
        plain.enqueue_many([Job(id=f"{number}", delay=(number % 10 == 0) * 2.0) for number in range(self.jobs)])
        queue = bench.face_of(plain)
        start = threading.Barrier(THREADS + 1)

        def claim(number: int) -> list[tuple[str, int]]:
            starts: list[tuple[str, int]] = []
            limit = batches[number % len(batches)]
            start.wait(bench.limit)
            try:
                while True:
                    jobs = queue.dequeue_many(limit)
                    starts += [(job.id, job.attempt) for job in jobs]
                    queue.ack_many(jobs)
            except QueueClosed:
                return starts

        claims = [bench.spawn(claim, number) for number in range(THREADS)]
        start.wait(bench.limit)
        bench.clock.advance(2.0)
        assert bench.eventually(lambda: plain.stats().acked == self.jobs, 6 * bench.limit)
        plain.close()
        starts = Counter(pair for claim in claims for pair in bench.result(claim))
        assert starts == Counter((f"{number}", 1) for number in range(self.jobs))
        assert plain.stats().unaccounted == 0

    def test_one_id_is_accepted_once_however_many_try_at_once(self, bench: Bench) -> None:
        plain = bench.plain()
        queue = bench.face_of(plain)
        start = threading.Barrier(8)

        def produce(number: int) -> list[int]:
            won: list[int] = []
            for turn in range(self.id_rounds):
                start.wait(bench.limit)
                try:
                    queue.enqueue(Job(b"%d" % number, id=f"{turn}"))
                except DuplicateJob:
                    continue
                won.append(turn)
            return won

        wins = Counter(turn for made in [bench.spawn(produce, number) for number in range(8)] for turn in made.result())
        assert wins == Counter(range(self.id_rounds))
        assert plain.stats().ready == self.id_rounds

    def test_a_job_is_either_cancelled_or_run_never_both(self, bench: Bench) -> None:
        count = self.jobs // 2
        plain = bench.plain(capacity=count, lease=3600.0)
        plain.enqueue_many([Job(id=f"{number}") for number in range(count)])
        queue = bench.face_of(plain)
        names = [f"{number}" for number in range(count)]
        random.Random(5).shuffle(names)
        start = threading.Barrier(2)

        def work() -> set[str]:
            ran: set[str] = set()
            start.wait(bench.limit)
            while (job := queue.dequeue(timeout=0)) is not None:
                ran.add(job.id)
                queue.ack(job)
            return ran

        def cancel() -> set[str]:
            start.wait(bench.limit)
            return {name for name in names if queue.cancel(name)}

        working, cancelling = bench.spawn(work), bench.spawn(cancel)
        ran, cancelled = working.result(6 * bench.limit), cancelling.result(6 * bench.limit)
        assert not ran & cancelled
        assert len(ran) + len(cancelled) == count
        assert (plain.stats().acked, plain.stats().cancelled) == (len(ran), len(cancelled))

    def test_a_late_ack_against_the_next_claim_never_acks_twice(self, bench: Bench) -> None:
        plain = bench.plain(lease=1.0, max_attempts=1_000_000)
        queue = bench.face_of(plain)
        start = threading.Barrier(2)
        plain.enqueue(Job(id="a"))
        late = plain.dequeue(timeout=0)
        rounds = self.jobs // 10

        def ack_late() -> int:
            lost = 0
            for _ in range(rounds):
                start.wait(bench.limit)
                held = late
                assert held is not None
                try:
                    queue.ack(held)
                except LeaseLost:
                    lost += 1
                start.wait(bench.limit)
            return lost

        acking = bench.spawn(ack_late)
        for _ in range(rounds):
            bench.clock.advance(1.0)
            start.wait(bench.limit)
            late = plain.dequeue(timeout=0) or late
            start.wait(bench.limit)
        lost = bench.result(acking)
        figures = plain.stats()
        assert figures.acked + lost == rounds
        assert figures.acked <= 1
        assert figures.unaccounted == 0
