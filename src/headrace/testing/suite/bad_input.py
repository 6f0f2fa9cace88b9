"""Bad input: one table for every backend; the same error, naming the culprit, and nothing stored."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from ...errors import ConfigError, InvalidJob
from ...job import Job
from ..bench import Bench, drain, lease

NAN, INF = float("nan"), float("inf")
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001  naive on purpose
AWARE = datetime(2026, 6, 1, tzinfo=UTC)

SECONDS: list[Any] = [-1, -0.000001, NAN, INF, -INF, True, "5", None, timedelta(seconds=5), 1e12, 10**400, 5j]
MOMENTS: list[Any] = [NAIVE, date(2026, 1, 1), 5, 5.0, "2026-01-01T00:00:00Z", NAN, timedelta(1)]
WHOLE: list[Any] = [2**31, -(2**31) - 1, 2**63, 10**30, 1.5, 1.0, "5", True, NAN, b"1"]

BAD: list[tuple[str, dict[str, Any]]] = [
    *[("delay", {"delay": value}) for value in SECONDS],
    *[("delay", {"delay": value, "run_at": AWARE}) for value in (False, None, "", 0j, 5.0)],
    *[("run_at", {"run_at": value}) for value in MOMENTS],
    *[("deadline", {"deadline": value}) for value in MOMENTS],
    *[("enqueued_at", {"enqueued_at": value}) for value in (NAIVE, 5)],
    *[("priority", {"priority": value}) for value in [*WHOLE, None]],
    *[("max_attempts", {"max_attempts": value}) for value in [*WHOLE[2:], 0, -1, 1_000_001]],
    *[("id", {"id": value}) for value in ("", None, 1, 1.0, True, b"a", "a\0b", "\ud800", "x" * 256)],
    *[("payload", {"payload": value}) for value in (None, "text", bytearray(b"a"), memoryview(b"a"), {"a": 1}, 5)],
    ("payload", {"payload": b"x" * 1001}),
]


def short(value: object) -> str:
    """A test's name: what was given, but not 400 digits of it."""
    text = repr(list(value) if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else value)
    return text if len(text) < 40 else f"{text[:20]}…{len(text)}"


class BadInput:
    @pytest.mark.parametrize(("what", "given"), BAD, ids=[f"{what}={short(given.values())}" for what, given in BAD])
    def test_a_job_that_cannot_be_is_refused_by_name_and_nothing_is_stored(
        self, bench: Bench, what: str, given: dict[str, Any]
    ) -> None:
        queue = bench.open(max_payload=1000)
        bad = Job(**{"id": "bad", **given})
        before = queue.stats()
        with pytest.raises(InvalidJob, match=what) as caught:
            queue.enqueue(bad)
        with pytest.raises(InvalidJob):
            queue.enqueue_many([Job(id="good"), bad])
        assert isinstance(caught.value, ValueError)
        assert what == "id" or "'bad'" in str(caught.value)
        assert queue.stats() == before
        queue.enqueue(Job(id="bad"))
        assert drain(queue) == ["bad"]

    @pytest.mark.parametrize("thing", [None, b"payload", "id", {"id": "a"}, 5, object()])
    def test_what_is_no_job_is_refused(self, bench: Bench, thing: Any) -> None:
        queue = bench.open()
        with pytest.raises(InvalidJob):
            queue.enqueue(thing)
        with pytest.raises(InvalidJob):
            queue.enqueue_many([Job(id="a"), thing])
        assert queue.stats().enqueued == 0

    def test_the_largest_of_everything_is_accepted_and_comes_back(self, bench: Bench) -> None:
        queue = bench.open(max_payload=1000)
        moment = AWARE + timedelta(microseconds=1)
        big = Job(b"\0" * 1000, id="ü" * 255, priority=2**31 - 1, deadline=moment, max_attempts=1_000_000)
        queue.enqueue_many([big, Job(id="a", priority=-(2**31), delay=100 * 365 * 86_400.0)])
        held = lease(queue)
        assert (held.payload, held.id, held.priority) == (big.payload, big.id, big.priority)
        assert (held.deadline, held.max_attempts) == (moment, 1_000_000)

    def test_ids_are_compared_exactly(self, bench: Bench) -> None:
        queue = bench.open()
        names = ["a", "A", " a", "a ", "é", "e\u0301", "1", "01", "%", "_", "'", '"', "a;b", "\n"]
        queue.enqueue_many([Job(id=name) for name in names])
        assert drain(queue) == names

    @pytest.mark.parametrize("seconds", SECONDS, ids=short)
    def test_a_bad_delay_of_a_settle_is_refused_and_the_lease_holds(self, bench: Bench, seconds: Any) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a"))
        held = lease(queue)
        for settle in (queue.nack, queue.release, lambda job, delay: queue.release_many([job], delay), queue.extend):
            with pytest.raises(ConfigError, match=r"delay|seconds"):
                settle(held, seconds)
        assert queue.find("a") == held
        queue.ack(held)

    @pytest.mark.parametrize("seconds", [0, 0.0, 1e-9])
    def test_a_lease_cannot_be_extended_by_nothing(self, bench: Bench, seconds: float) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a"))
        held = lease(queue)
        with pytest.raises(ConfigError, match="seconds"):
            queue.extend(held, seconds)
        with pytest.raises(ConfigError, match="seconds"):
            queue.extend_many([held], seconds)
        queue.ack(held)

    @pytest.mark.parametrize("limit", [0, -1, True, 1.0, "1", None, 10**9], ids=short)
    def test_a_bad_limit_takes_nothing(self, bench: Bench, limit: Any) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a"))
        with pytest.raises(ConfigError, match="limit"):
            queue.dequeue_many(limit, timeout=0)
        assert drain(queue) == ["a"]

    @pytest.mark.parametrize("limit", [True, 1.0, "1", NAN], ids=short)
    def test_a_bad_limit_of_dead_letters_is_refused(self, bench: Bench, limit: Any) -> None:
        queue = bench.open()
        queue.enqueue(Job(id="a"))
        queue.bury(lease(queue))
        for call in (queue.dead, queue.take_dead, queue.replay):
            with pytest.raises(ConfigError, match="limit"):
                call(limit)
        assert queue.stats().dead == 1

    def test_one_text_is_not_a_list_of_ids(self, bench: Bench) -> None:
        queue = bench.open()
        with pytest.raises(ConfigError, match="ids"):
            queue.replay(ids="abc")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *[("capacity", value) for value in (0, -1, 1.0, True, "5", None, 10**12)],
            *[("max_attempts", value) for value in (0, -1, 1.5, True, "5", None)],
            *[("lease", value) for value in (0, 1e-9, *SECONDS)],
            *[("queue", value) for value in ("", "a b", "a;drop", "1a", "ä", "x" * 64, None, 5, 'a"b', "a\n")],
            *[("overflow", value) for value in ("", "burst", None, 5)],
            *[("dead_capacity", value) for value in (-1, 1.0, True, "5")],
            *[("deadline_to_dead", value) for value in (0, 1, None, "yes")],
            *[("max_payload", value) for value in (-1, 1.0, True, None)],
            ("no_such_setting", 1),
        ],
        ids=short,
    )
    def test_a_bad_setting_fails_at_construction_and_is_named(self, bench: Bench, name: str, value: Any) -> None:
        with pytest.raises(ConfigError, match=name) as caught:
            bench.plain(**{name: value})
        assert isinstance(caught.value, ValueError)
        assert name == "no_such_setting" or repr(value) in str(caught.value)

    def test_settings_are_frozen(self, bench: Bench) -> None:
        queue = bench.open(capacity=3)
        with pytest.raises(AttributeError):
            queue.settings.capacity = 5  # type: ignore[misc]  # the point of the test
        assert (queue.settings.capacity, queue.stats().capacity) == (3, 3)
