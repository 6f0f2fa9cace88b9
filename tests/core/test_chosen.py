"""Which core runs, and that nobody can tell: the same jobs, the same words, whoever made them."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from headrace import ConfigError, Job, LeaseLost, Queue, chosen
from headrace.memory.queue import memory_queue
from headrace.settings import Settings
from headrace.testing import VirtualClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(params=chosen.built())
def queue(request: pytest.FixtureRequest) -> Queue:
    return memory_queue(Settings.make(clock=VirtualClock(), lease=30.0), request.param)


def leased(queue: Queue, **given: object) -> Job:
    queue.enqueue(Job(b"x", id="a", **given))  # type: ignore[arg-type]
    job = queue.dequeue(0)
    assert job is not None
    return job


def say(core: str) -> str:
    """What a process with that ``HEADRACE_CORE`` says that it runs."""
    program = "from headrace import connect, chosen; connect('memory://'); print(chosen.running())"
    environment = os.environ | {"HEADRACE_CORE": core}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def test_the_environment_chooses_the_core() -> None:
    assert say("interpreted") == "interpreted"
    assert say("") == chosen.built()[-1]
    assert say("compiled") == "compiled" or "the compiled core cannot be used" in say("compiled")


def test_a_core_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_CORE", "fast")
    with pytest.raises(ConfigError, match="HEADRACE_CORE: 'fast' is neither interpreted nor compiled"):
        chosen.wanted()


def test_a_compiled_core_that_is_not_there_is_missed_only_by_who_insists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "headrace._compiled.ids", None)  # as the import system says "not there"
    assert chosen.module("ids", "").__name__ == "headrace.ids"
    with pytest.raises(ConfigError, match="install headrace anew where there is a C compiler"):
        chosen.module("ids", "compiled")


def test_the_compiled_core_is_made_of_the_files_as_they_stand() -> None:
    here = Path(chosen.__file__).parent
    made_of = here / "_compiled" / "made_of.txt"
    lines = made_of.read_text().splitlines() if "compiled" in chosen.built() else []
    stale = [name for digest, name in map(str.split, lines) if sha256((here / name).read_bytes()).hexdigest() != digest]
    assert stale == [], "build it anew: python setup.py build_ext --inplace, or install headrace again"


@pytest.mark.parametrize("name", ["enqueue", "enqueue_many", "dequeue", "dequeue_many", "ack", "ack_many", "try_take"])
def test_a_call_on_the_short_way_belongs_to_the_very_class_of_its_queue(queue: Queue, name: str) -> None:
    """Python specializes no other call of a compiled method."""
    kind = type(queue)
    assert getattr(vars(kind)[name], "__objclass__", kind) is kind


def test_a_snapshot_shows_moments_and_is_equal_to_what_it_shows(queue: Queue) -> None:
    job = leased(queue, deadline=NOW + timedelta(hours=1))
    assert (job.enqueued_at, job.run_at, job.lease_until) == (NOW, NOW, NOW + timedelta(seconds=30))
    assert (job.deadline, job.died_at) == (NOW + timedelta(hours=1), None)
    spelled = Job(**{name: getattr(job, name) for name in Job.__struct_fields__})
    assert spelled == job
    assert hash(spelled) == hash(job)
    assert repr(spelled) == repr(job)
    assert "enqueued_at=datetime.datetime(2026, 1, 1, 0, 0" in repr(job)
    assert job != msgspec.structs.replace(job, attempt=2)


@pytest.mark.parametrize("year", [1, 1700, 2026, 2255, 2256, 9999])
def test_a_moment_however_far_is_shown_to_the_microsecond(year: int, queue: Queue) -> None:
    moment = datetime(year, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    queue.enqueue(Job(id="a", enqueued_at=min(moment, NOW), run_at=max(moment, NOW)))
    job = queue.find("a")
    assert job is not None
    assert (job.enqueued_at, job.run_at) == (min(moment, NOW), max(moment, NOW))


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda job: pickle.loads(pickle.dumps(job))])
def test_a_copy_of_a_snapshot_settles_it(queue: Queue, again: object) -> None:
    job = leased(queue)
    same = again(job)  # type: ignore[operator]
    assert same == job
    queue.ack(same)
    assert queue.stats().acked == 1


def test_a_snapshot_is_frozen(queue: Queue) -> None:
    job = leased(queue)
    for name in Job.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(job, name, None)


def test_a_snapshot_that_is_enqueued_again_keeps_its_moments(queue: Queue) -> None:
    job = leased(queue)
    queue.ack(job)
    queue.enqueue(msgspec.structs.replace(job, id="b"))
    found = queue.find("b")
    assert found is not None
    assert (found.enqueued_at, found.attempt) == (NOW, 0)


@pytest.mark.parametrize("token", [0, -1, 2**62, 2**64, 2**200, -(2**200), "7", None, 1.5])
def test_whatever_is_not_the_token_loses(queue: Queue, token: object) -> None:
    job = leased(queue)
    with pytest.raises(LeaseLost):
        queue.ack(msgspec.structs.replace(job, token=token))
    with pytest.raises(LeaseLost):
        queue.ack_many([msgspec.structs.replace(job, token=token)])
    assert queue.stats().ack_too_late == 2
    queue.ack(job)


@pytest.mark.parametrize("core", chosen.built())
def test_an_ack_right_after_the_lease_by_the_machines_own_clock_is_too_late(core: str) -> None:
    queue = memory_queue(Settings.make(lease=0.001), core)
    for number in range(20):
        queue.enqueue(Job(id=str(number)))
        job = queue.dequeue(0)
        taken = time.monotonic_ns()
        assert job is not None
        while time.monotonic_ns() < taken + 1_001_000:
            pass
        with pytest.raises(LeaseLost):
            queue.ack(job)
        assert queue.cancel(str(number))
