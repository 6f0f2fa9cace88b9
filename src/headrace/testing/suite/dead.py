"""Dead letters: bounded, looked at, taken out, and replayed."""

from __future__ import annotations

import pytest

from ...errors import QueueClosed
from ...job import Job, State
from ...queue import Queue
from ..bench import Bench, drain, lease


def bury(queue: Queue, *names: str) -> None:
    for name in names:
        queue.enqueue(Job(name.encode(), id=name))
        queue.bury(lease(queue), error=f"why {name}")


class Dead:
    def test_the_longest_dead_come_first_and_they_stay(self, bench: Bench) -> None:
        queue = bench.open()
        bury(queue, "c", "a", "b")
        assert [job.id for job in queue.dead()] == ["c", "a", "b"]
        assert [job.id for job in queue.dead(limit=2)] == ["c", "a"]
        assert queue.stats().dead == 3

    def test_pages_follow_each_other_with_no_gap_and_no_overlap(self, bench: Bench) -> None:
        queue = bench.open()
        names = [f"{number}" for number in range(7)]
        bury(queue, *names)
        seen: list[str] = []
        after = None
        while page := queue.dead(limit=3, after=after):
            seen += [job.id for job in page]
            after = page[-1]
        assert seen == names

    def test_a_page_goes_on_also_when_what_it_follows_is_gone(self, bench: Bench) -> None:
        queue = bench.open()
        bury(queue, "a", "b", "c")
        (first,) = queue.dead(limit=1)
        queue.take_dead(1)
        assert [job.id for job in queue.dead(after=first)] == ["b", "c"]

    @pytest.mark.parametrize("limit", [0, -1])
    def test_no_limit_shows_and_takes_none(self, bench: Bench, limit: int) -> None:
        queue = bench.open()
        bury(queue, "a")
        assert queue.dead(limit=limit) == []
        assert queue.take_dead(limit) == []
        assert queue.replay(limit=limit) == 0
        assert queue.stats().dead == 1

    def test_a_dead_letter_carries_error_attempts_and_times(self, bench: Bench) -> None:
        queue = bench.open(max_attempts=2)
        moment = bench.clock.now()
        queue.enqueue(Job(b"p", id="a", priority=4))
        queue.nack(lease(queue), error="first")
        queue.nack(lease(queue), error="second")
        (dead,) = queue.dead()
        assert (dead.state, dead.payload, dead.priority) == (State.DEAD, b"p", 4)
        assert (dead.last_error, dead.attempt, dead.max_attempts) == ("second", 2, 2)
        assert (dead.enqueued_at, dead.lease_until) == (moment, None)

    def test_when_full_the_oldest_stay_and_the_others_are_counted(self, bench: Bench) -> None:
        queue = bench.open(dead_capacity=2)
        bury(queue, "a", "b", "c", "d")
        assert [job.id for job in queue.dead()] == ["a", "b"]
        assert (queue.stats().dead_total, queue.stats().dead_dropped) == (4, 2)
        bury(queue, "c")
        assert queue.stats().dead_dropped == 3

    def test_a_capacity_of_none_keeps_none(self, bench: Bench) -> None:
        queue = bench.open(dead_capacity=0)
        bury(queue, "a")
        assert (queue.dead(), queue.stats().dead_dropped) == ([], 1)

    def test_take_dead_gives_the_oldest_away_for_good_and_makes_room(self, bench: Bench) -> None:
        queue = bench.open(dead_capacity=2)
        bury(queue, "a", "b")
        assert [(job.id, job.last_error) for job in queue.take_dead(1)] == [("a", "why a")]
        bury(queue, "c")
        assert [job.id for job in queue.take_dead(10)] == ["b", "c"]
        assert queue.take_dead(10) == []
        assert (queue.stats().taken, queue.stats().dead) == (3, 0)

    def test_the_same_id_may_be_dead_many_times_and_find_shows_the_latest(self, bench: Bench) -> None:
        queue = bench.open()
        for error in ("one", "two"):
            queue.enqueue(Job(id="a"))
            queue.bury(lease(queue), error=error)
        assert [job.last_error for job in queue.dead()] == ["one", "two"]
        found = queue.find("a")
        assert found is not None
        assert found.last_error == "two"
        queue.enqueue(Job(id="a"))
        found = queue.find("a")
        assert found is not None
        assert found.state is State.READY

    # Replay

    def test_replay_starts_afresh(self, bench: Bench) -> None:
        queue = bench.open(max_attempts=1)
        queue.enqueue(Job(b"p", id="a", priority=2))
        first = lease(queue)
        queue.nack(first, error="no")
        assert queue.replay() == 1
        held = lease(queue)
        assert (held.attempt, held.payload, held.priority, held.max_attempts) == (1, b"p", 2, 1)
        assert held.fence > first.fence
        assert queue.stats().dead == 0

    def test_replay_takes_the_longest_dead_first_up_to_the_limit(self, bench: Bench) -> None:
        queue = bench.open()
        bury(queue, *"abcd")
        assert queue.replay(limit=2) == 2
        assert [job.id for job in queue.dead()] == ["c", "d"]
        assert drain(queue) == ["a", "b"]

    def test_replay_by_ids_takes_those_and_no_other(self, bench: Bench) -> None:
        queue = bench.open()
        bury(queue, *"abcd")
        assert queue.replay(ids=["d", "b", "nobody"]) == 2
        assert drain(queue) == ["b", "d"]
        assert queue.replay(ids=[]) == 0
        assert queue.replay(ids=["a", "c"], limit=1) == 1
        assert drain(queue) == ["a"]

    def test_replay_leaves_dead_what_has_no_room(self, bench: Bench) -> None:
        queue = bench.open(capacity=2, dead_capacity=9)
        bury(queue, *"abc")
        queue.enqueue(Job(id="x"))
        assert queue.replay() == 1
        assert [job.id for job in queue.dead()] == ["b", "c"]
        assert queue.replay() == 0
        assert drain(queue) == ["x", "a"]

    def test_replay_leaves_dead_whose_id_is_in_use_again(self, bench: Bench) -> None:
        queue = bench.open()
        bury(queue, "a", "b")
        queue.enqueue(Job(b"new", id="a"))
        assert queue.replay() == 1
        assert [job.id for job in queue.dead()] == ["a"]
        assert drain(queue) == ["a", "b"]

    def test_of_two_dead_with_one_id_replay_takes_one(self, bench: Bench) -> None:
        queue = bench.open()
        bury(queue, "a", "a")
        assert queue.replay() == 1
        assert (queue.stats().ready, queue.stats().dead) == (1, 1)

    def test_replay_wakes_who_waits(self, bench: Bench) -> None:
        queue = bench.quiet()
        bury(queue, "a")
        (poll,) = bench.waiters(1, queue)
        queue.replay()
        taken = bench.result(poll)
        assert taken is not None
        assert taken.id == "a"

    def test_a_closed_queue_replays_nothing_and_still_shows_and_gives_its_dead(self, bench: Bench) -> None:
        queue = bench.open()
        bury(queue, "a", "b")
        queue.close()
        with pytest.raises(QueueClosed):
            queue.replay()
        assert [job.id for job in queue.dead()] == ["a", "b"]
        assert [job.id for job in queue.take_dead(1)] == ["a"]

    def test_a_dead_letter_tells_when_it_died_whoever_looked_and_when(self, bench: Bench) -> None:
        queue = bench.open(max_attempts=1, lease=30.0)
        bury(queue, "buried")
        buried = bench.clock.now()
        queue.enqueue(Job(id="expired"))
        expired = lease(queue).lease_until
        bench.clock.advance(100.0)
        assert [(job.id, job.died_at) for job in queue.dead()] == [("buried", buried), ("expired", expired)]
        queue.replay()
        assert lease(queue).died_at is None
