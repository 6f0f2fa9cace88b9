"""The tools of the suite can themselves tell right from wrong."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

import headrace.testing
from headrace import Stats, connect
from headrace.job import State
from headrace.testing.bench import Bench
from headrace.testing.contract import QueueContract
from headrace.testing.raw import BrokenInvariant, RawJob, RawState, check_change, check_counts, check_state, check_stats

READY = RawJob(id="a", seq=1, places=(State.READY,), attempt=1, fence=3, enqueued=10)
LEASED = replace(READY, places=(State.INFLIGHT,), left=5)
DEAD = replace(READY, places=(State.DEAD,))


def state(*jobs: RawJob, dead: tuple[RawJob, ...] = (), ids: tuple[str, ...] | None = None) -> RawState:
    return RawState(jobs=jobs, dead=dead, ids=tuple(job.id for job in jobs) if ids is None else ids)


@pytest.mark.parametrize(
    ("rule", "raw"),
    [
        ("I1", state(replace(READY, places=()))),
        ("I1", state(replace(READY, places=(State.READY, State.DELAYED)))),
        ("I1", state(DEAD)),
        ("I1", state(dead=(READY,))),
        ("I2", state(replace(LEASED, left=None))),
        ("I2", state(replace(READY, left=5))),
        ("I2", state(replace(LEASED, fence=0))),
        ("I2c", state(replace(LEASED, left=0))),
        ("I2b", state(READY, READY)),
        ("I2b", state(READY, ids=())),
        ("I2b", state(ids=("gone",))),
        ("I6", state(READY, replace(READY, id="b"), replace(READY, id="c"))),
    ],
)
def test_a_state_that_breaks_an_invariant_is_named(rule: str, raw: RawState) -> None:
    check_state(state(READY, dead=(DEAD,)), 2, moved=True)
    with pytest.raises(BrokenInvariant, match=f"^{rule}: "):
        check_state(raw, 2, moved=True)


@pytest.mark.parametrize(
    ("rule", "call", "before", "after"),
    [
        ("I3", "stats", READY, replace(READY, attempt=2)),
        ("I3", "dequeue", READY, replace(LEASED, attempt=3, fence=4)),
        ("I3", "nack", LEASED, replace(READY, attempt=2)),
        ("I4", "nack", LEASED, replace(READY, enqueued=11)),
        ("I7", "dequeue", READY, replace(LEASED, fence=3)),
        ("I7", "release", LEASED, replace(READY, fence=2)),
    ],
)
def test_a_change_that_breaks_an_invariant_is_named(rule: str, call: str, before: RawJob, after: RawJob) -> None:
    with pytest.raises(BrokenInvariant, match=f"^{rule}: "):
        check_change(call, state(before), state(after), {"a": 3})


@pytest.mark.parametrize(
    ("call", "before", "after"),
    [
        ("dequeue", READY, replace(LEASED, attempt=2, fence=4)),
        ("release", LEASED, replace(READY, attempt=0)),
        ("nack", LEASED, READY),
        ("enqueue", LEASED, replace(READY, attempt=0, fence=0, enqueued=99)),
    ],
)
def test_what_the_calls_are_for_breaks_nothing(call: str, before: RawJob, after: RawJob) -> None:
    check_change(call, state(before), state(after), {"a": 3})


def test_a_replay_that_forgets_the_first_enqueue_time_is_named() -> None:
    again = replace(READY, seq=2, attempt=0)
    check_change("replay", state(dead=(DEAD,)), state(again), {})
    with pytest.raises(BrokenInvariant, match=r"^I4: "):
        check_change("replay", state(dead=(DEAD,)), state(replace(again, enqueued=11)), {})


def test_figures_that_are_not_so_are_named() -> None:
    check_counts(state(READY, dead=(DEAD,)), Stats(ready=1, dead=1))
    for wrong in (Stats(), Stats(ready=1), Stats(ready=1, dead=1, delayed=1)):
        with pytest.raises(BrokenInvariant, match=r"^C: "):
            check_counts(state(READY, dead=(DEAD,)), wrong)
    with pytest.raises(BrokenInvariant, match=r"^C: 1 jobs are unaccounted"):
        check_stats(None, Stats(enqueued=1))
    with pytest.raises(BrokenInvariant, match=r"^C: the total acked fell"):
        check_stats(Stats(enqueued=2, acked=2), Stats(enqueued=2, acked=1, cancelled=1))


class Memory(QueueContract):
    __test__ = False

    def make_queue(self, **settings: Any) -> headrace.Queue:
        return connect("memory://", **settings)


@pytest.mark.parametrize("face", ["sync", "async"])
def test_a_bench_shows_what_a_caller_raised_and_leaves_no_thread_behind(face: str) -> None:
    bench = Bench(Memory(), face, limit=5.0)
    queue = bench.open()
    polls = bench.waiters(2, bench.quiet())
    with pytest.raises(headrace.ConfigError):
        bench.result(bench.spawn(queue.dequeue, timeout=-1))
    assert not bench.eventually(lambda: False, 0.01)
    bench.close()
    for poll in polls:
        with pytest.raises(headrace.QueueClosed):
            bench.result(poll)


def test_a_contract_without_a_queue_says_what_is_missing() -> None:
    with pytest.raises(NotImplementedError, match="make_queue"):
        QueueContract().make_queue()
    assert QueueContract().raw_state(connect("memory://")) is None


def test_the_testing_package_has_what_it_names_and_nothing_else() -> None:
    for name in headrace.testing.__all__:
        assert getattr(headrace.testing, name).__name__ == name
    with pytest.raises(AttributeError, match="no_such_thing"):
        headrace.testing.no_such_thing  # noqa: B018  the look is the test
