"""Arguments that are too large for a queue: where they are kept, what is enqueued, and what a worker makes of it."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import os
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import msgspec
import psycopg
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from test_worker import at_rest, working

import headrace
from headrace import (
    App,
    ConfigError,
    Context,
    DuplicateJob,
    InvalidJob,
    Job,
    QueueClosed,
    QueueFull,
    StorageFull,
    Unavailable,
    connect,
)
from headrace.pool import Pool, Unserved
from headrace.tasks.codec import open_envelope
from headrace.testing.clock import wait_until

HERE = Path(__file__).parent
LARGE = "grain " * 1_000


class Folders(MemoryFileSystem):
    """Nothing can be written where there is no folder."""

    protocol = "folders"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.removeprefix(f"{cls.protocol}://")))

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        if not self.isdir(self._parent(path)):
            raise FileNotFoundError(path)
        super().pipe_file(path, value, mode)


class Slow(Folders):
    """What is written is not written before it may go on."""

    protocol = "slow"
    begun = threading.Event()
    go_on = threading.Event()

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        self.begun.set()
        if not self.go_on.wait(10.0):
            raise TimeoutError
        MemoryFileSystem.pipe_file(self, path, value, mode)


for each in (Folders, Slow):
    fsspec.register_implementation(each.protocol, each, clobber=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "outside"
    made.mkdir()
    return made


@pytest.fixture
def app(folder: Path) -> Iterator[App]:
    with App("memory://", outside=f"file://{folder}", outside_above=1_000, capacity=3, max_attempts=2) as app:
        yield app


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("dsn"))
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'jobs.db'}"


def kept(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def grinding(app: App, done: list[str], **settings: Any) -> Any:
    @app.task(name="grind", **settings)
    def grind(grain: str) -> None:
        done.append(grain)

    return grind


def until_dead(app: App) -> str:
    """Work until nothing is left but one dead letter; why it is dead."""
    with working(app.pool(retry=lambda attempt: 0.0)):
        wait_until(lambda: app.queue().stats().dead == 1)
    (dead,) = app.queue().dead()
    assert dead.attempt == 2
    assert dead.last_error is not None
    return dead.last_error


# There and back


def test_large_arguments_go_outside_and_come_back_to_the_handler(url: str, folder: Path) -> None:
    done: list[str] = []
    with App(url, outside=f"file://{folder}", max_payload=200) as app:
        grind = grinding(app, done, queue="mill")
        grind.enqueue(LARGE * 100)
        (path,) = kept(folder)
        assert path.parent == folder / "mill"
        assert msgspec.json.decode(path.read_bytes()) == {"grain": LARGE * 100}
        with working(app.pool("mill")):
            wait_until(lambda: app.queue("mill").stats().acked == 1)
    assert done == [LARGE * 100]


def test_every_kind_of_handler_gets_its_arguments(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUTSIDE", str(folder))
    monkeypatch.setenv("HEADRACE_URL", f"sqlite:///{tmp_path / 'jobs.db'}")
    monkeypatch.delitem(sys.modules, "outside_app", raising=False)
    kinds = importlib.import_module("outside_app")
    with kinds.app as app:
        for task in (kinds.on_the_loop, kinds.in_a_thread, kinds.in_a_process):
            task.enqueue(str(tmp_path / task.__name__), text=LARGE)
        assert len(kept(folder)) == 3
        with working(app.pool()):
            wait_until(lambda: app.queue().stats().acked == 3, 60.0)
    for name in ("on_the_loop", "in_a_thread", "in_a_process"):
        assert (tmp_path / name).read_text() == hashlib.sha256(LARGE.encode()).hexdigest()


def test_the_context_of_a_handler_is_what_it_would_be(app: App) -> None:
    seen: list[tuple[str, str, int]] = []

    @app.task
    async def waits(context: Context, grain: str) -> None:
        seen.append(("async", context.job.id, len(grain)))

    @app.task
    def blocks(grain: str, *, context: Context) -> None:
        seen.append(("thread", context.job.id, len(grain)))

    waits.options(id="a").enqueue(LARGE)
    blocks.options(id="b").enqueue(grain=LARGE)
    with working(app.pool(workers=2)):
        wait_until(lambda: app.queue().stats().acked == 2)
    assert sorted(seen) == [("async", "a", 6_000), ("thread", "b", 6_000)]


def test_the_bytes_of_the_arguments_decide_and_the_limit_itself_stays_inside(app: App, folder: Path) -> None:
    grind = grinding(app, [])
    room = 1_000 - len('{"grain":""}')
    inside = grind.enqueue("x" * room)
    assert kept(folder) == []
    outside = grind.enqueue("x" * (room + 1))
    (path,) = kept(folder)
    assert path.stat().st_size == 1_001
    first, second = (app.queue().find(each.id) for each in (inside, outside))
    assert first is not None
    assert first.payload == grind.job("x" * room).payload
    assert second is not None
    assert len(second.payload) < 250
    assert open_envelope(second.payload).task == "grind"


def test_a_job_that_is_made_but_not_enqueued_holds_its_arguments(app: App, folder: Path) -> None:
    assert LARGE.encode() in grinding(app, []).job(LARGE).payload
    assert kept(folder) == []


def test_of_many_only_the_large_ones_go_outside(app: App, folder: Path) -> None:
    done: list[str] = []
    grind = grinding(app, done)
    handles = grind.enqueue_many([{"grain": "rye"}, {"grain": LARGE}, {"grain": LARGE}])
    assert [handle.id for handle in handles] == sorted(handle.id for handle in handles)
    assert len(kept(folder)) == 2
    with working(app.pool(workers=1)):
        wait_until(lambda: at_rest(app.queue()))
    assert done == ["rye", LARGE, LARGE]


async def test_async_callers_do_the_same(app: App, folder: Path) -> None:
    done: list[str] = []
    grind = grinding(app, done)
    await grind.enqueue_async(LARGE)
    await grind.enqueue_many_async([{"grain": LARGE}, {"grain": "rye"}])
    assert len(kept(folder)) == 2
    with pytest.raises(QueueFull):
        await grind.enqueue_async(LARGE)
    assert len(kept(folder)) == 2


def test_another_file_system_does_as_well() -> None:
    done: list[str] = []
    with App("memory://", outside="memory://barn/grain", outside_above=10) as app:
        grinding(app, done).enqueue(LARGE)
        memory = fsspec.filesystem("memory")
        (path,) = memory.find("/barn/grain")
        assert path.startswith("/barn/grain/default/")
        with working(app.pool()):
            wait_until(lambda: app.queue().stats().acked == 1)
        memory.rm("/barn", recursive=True)
    assert done == [LARGE]


def test_a_file_system_with_real_folders_gets_them_made() -> None:
    with App("memory://", outside="folders://barn/grain", outside_above=10) as app:
        grinding(app, [], queue="mill").enqueue_many([{"grain": LARGE}, {"grain": LARGE}])
        assert len(Folders().ls("/barn/grain/mill")) == 2


async def test_writing_does_not_hold_up_the_event_loop() -> None:
    with App("memory://", outside="slow://barn", outside_above=10) as app:
        enqueueing = asyncio.create_task(grinding(app, []).enqueue_async(LARGE))
        await asyncio.to_thread(Slow.begun.wait, 10.0)
        Slow.go_on.set()
        await enqueueing
        assert app.queue().stats().ready == 1


def test_a_retry_and_a_replay_find_the_arguments_again(app: App) -> None:
    seen: list[int] = []

    @app.task
    def fails_twice(grain: str) -> None:
        seen.append(len(grain))
        if len(seen) <= 2:
            raise ValueError("not ground")

    fails_twice.enqueue(LARGE)
    assert until_dead(app) == "ValueError: not ground"
    assert app.queue().replay(limit=1) == 1
    with working(app.pool()):
        wait_until(lambda: app.queue().stats().acked == 1)
    assert seen == [6_000] * 3


def test_a_job_that_went_on_to_another_queue_finds_its_arguments(app: App) -> None:
    done: list[str] = []
    grinding(app, done, queue="mill").enqueue(LARGE)
    with connect("memory://") as other:
        moved = app.queue("mill").dequeue(timeout=0)
        assert moved is not None
        other.enqueue(Job(payload=moved.payload))
        with working(Pool(other, app)):
            wait_until(lambda: other.stats().acked == 1)
    assert done == [LARGE]


def test_older_arguments_are_brought_up_to_date(app: App) -> None:
    grinding(app, []).enqueue(LARGE)
    seen: list[tuple[int, str]] = []
    new = App("memory://", outside=app.outside._url if app.outside else None)

    @new.task(name="grind", version=2, upgrade=lambda args, version: {"sack": args["grain"], "number": version})
    async def grind(number: int, sack: str) -> None:
        seen.append((number, sack))

    with working(Pool(app.queue(), new)):
        wait_until(lambda: app.queue().stats().acked == 1)
    assert seen == [(1, LARGE)]


def test_arguments_and_their_names_are_on_the_disk_before_the_job_is_enqueued(
    app: App, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, sync, synced = app.queue(), os.fsync, []

    def noted(handle: int) -> None:
        sync(handle)
        synced.append((os.readlink(f"/proc/self/fd/{handle}"), queue.stats().ready))

    monkeypatch.setattr(os, "fsync", noted)
    grind = grinding(app, [])
    grind.enqueue(LARGE)
    (path,) = kept(folder)
    assert synced == [(str(each), 0) for each in (folder, path, path.parent)]
    grind.enqueue(LARGE)
    assert [ready for _, ready in synced[3:]] == [1, 1, 1]


# A refusal leaves nothing


def test_a_full_queue_leaves_nothing_outside(app: App, folder: Path) -> None:
    grind = grinding(app, [])
    grind.enqueue_many([{"grain": "rye"}] * 2)
    with pytest.raises(QueueFull):
        grind.enqueue_many([{"grain": LARGE}] * 2)
    assert kept(folder) == []


def test_a_duplicate_leaves_the_arguments_of_the_first_alone(app: App, folder: Path) -> None:
    done: list[str] = []
    grind = grinding(app, done).options(id="a")
    grind.enqueue(LARGE)
    before = kept(folder)
    with pytest.raises(DuplicateJob):
        grind.enqueue(LARGE)
    assert kept(folder) == before
    with working(app.pool()):
        wait_until(lambda: app.queue().stats().acked == 1)


def test_a_job_that_is_refused_for_what_it_is_leaves_nothing_outside(app: App, folder: Path) -> None:
    with pytest.raises(InvalidJob):
        grinding(app, []).options(delay=float("nan")).enqueue(LARGE)
    assert kept(folder) == []


def test_a_closed_queue_leaves_nothing_outside(app: App, folder: Path) -> None:
    app.queue().close()
    with pytest.raises(QueueClosed):
        grinding(app, []).enqueue(LARGE)
    assert kept(folder) == []


def test_after_an_error_that_leaves_open_whether_it_was_enqueued_the_object_stays(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "jobs.db"
    with App(f"sqlite:///{path}", outside=f"file://{folder}", outside_above=10, busy_timeout=0.05) as app:
        grind = grinding(app, [])
        app.queue()
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable):
                grind.enqueue(LARGE)
        assert len(kept(folder)) == 1
        assert app.queue().stats().ready == 0


def test_where_it_cannot_be_written_nothing_is_enqueued(app: App, folder: Path) -> None:
    grind = grinding(app, [])
    shutil.rmtree(folder)  # as where a share is not mounted
    with pytest.raises(Unavailable, match="outside: arguments cannot be written: FileNotFoundError"):
        grind.enqueue_many([{"grain": "rye"}, {"grain": LARGE}])
    assert not folder.exists()
    assert app.queue().stats().ready == 0


def test_what_cannot_be_written_in_whole_is_removed(app: App, folder: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, before[1]))
    try:
        with pytest.raises(StorageFull, match="File too large"):
            grinding(app, []).enqueue_many([{"grain": LARGE[:2_000]}, {"grain": LARGE}])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert kept(folder) == []
    assert app.queue().stats().ready == 0


def test_a_producer_that_is_killed_before_it_has_enqueued_leaves_an_object_and_no_job(
    tmp_path: Path, folder: Path
) -> None:
    """The object is there, and the queue is full, so the producer waits between the two."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    with connect(url, capacity=10) as queue:
        queue.enqueue_many([Job(id=f"sack-{number}") for number in range(10)])
        source = Path(headrace.__file__).parents[1]
        producer = subprocess.Popen(
            [sys.executable, str(HERE / "outside_app.py")],
            env=os.environ | {"OUTSIDE": str(folder), "HEADRACE_URL": url, "PYTHONPATH": str(source)},
        )
        try:
            wait_until(lambda: [path.stat().st_size for path in kept(folder)] > [1_000], 30.0)
            assert producer.poll() is None
        finally:
            producer.kill()
            producer.wait()
        assert len(kept(folder)) == 1
        assert {job.id for job in queue.dequeue_many(20, timeout=0)} == {f"sack-{number}" for number in range(10)}


def test_a_transaction_that_is_rolled_back_leaves_an_object_and_no_job(dsn: str, folder: Path) -> None:
    done: list[str] = []
    with App(dsn, outside=f"file://{folder}", outside_above=10) as app, psycopg.connect(dsn) as connection:
        grind = grinding(app, done)
        grind.within(connection).enqueue("back " + LARGE)
        connection.rollback()
        grind.within(connection).enqueue_many([{"grain": LARGE}])
        connection.commit()
        assert len(kept(folder)) == 2
        with working(app.pool()):
            wait_until(lambda: app.queue().stats().acked == 1)
        assert at_rest(app.queue())
    assert done == [LARGE]


def test_what_cannot_be_removed_is_logged_and_the_rest_goes(
    app: App, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grind = grinding(app, [])
    grind.enqueue_many([{"grain": LARGE}] * 2)
    stubborn, gone = kept(folder)
    stubborn.unlink()
    stubborn.mkdir()
    assert app.outside is not None
    assert app.outside.remove([f"default/{path.name}" for path in (stubborn, gone, gone)]) == 1
    assert kept(folder) == []
    assert f"default/{stubborn.name} could not be removed" in caplog.text


# What a worker cannot read


def test_missing_arguments_fail_the_job_and_not_the_worker(app: App, folder: Path) -> None:
    done: list[str] = []
    grind = grinding(app, done)
    grind.options(id="a").enqueue(LARGE)
    (path,) = kept(folder)
    path.unlink()
    grind.enqueue(LARGE)
    assert until_dead(app) == (
        f"InvalidJob: job 'a': task 'grind': its arguments are not where they were kept outside, as default/{path.name}"
    )
    assert done == [LARGE]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda text: text[:-1], r"have 6,011 bytes, not 6,012$"),
        (lambda text: text.replace(b"grain g", b"grail g", 1), r"the digest differs$"),
        (lambda text: b"", r"have 0 bytes"),
    ],
)
def test_broken_arguments_fail_the_job_with_the_reason(app: App, folder: Path, spoil: Any, said: str) -> None:
    done: list[str] = []
    grinding(app, done).enqueue(LARGE)
    (path,) = kept(folder)
    path.write_bytes(spoil(path.read_bytes()))
    assert re.search(said, until_dead(app))
    assert done == []


def test_an_async_task_whose_arguments_are_missing_fails_the_same_way(app: App, folder: Path) -> None:
    @app.task(name="grind")
    async def grind(grain: str) -> None: ...

    grind.enqueue(LARGE)
    kept(folder)[0].unlink()
    assert "its arguments are not where they were kept outside" in until_dead(app)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "default/../../secret", "", "default/x\n", "default"])
def test_a_payload_leads_to_nothing_but_what_was_kept(app: App, folder: Path, name: str) -> None:
    done: list[str] = []
    grinding(app, done)
    text = b'{"grain":"secret"}'
    (folder.parent / "secret").write_bytes(text)
    place = {"name": name, "size": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    app.queue().enqueue(Job(payload=msgspec.json.encode({"task": "grind", "v": 1, "outside": place})))
    assert until_dead(app).endswith("kept outside, under a name that is none of ours")
    assert done == []


@pytest.mark.parametrize("stored", [b'{"task":"grind","v":1,"args":{},"outside":{"name":"","size":0,"sha256":""}}',
                                    b'{"task":"grind","v":1,"outside":{"name":""}}'])  # fmt: skip
def test_a_payload_with_both_or_half_a_place_is_none_of_ours(app: App, stored: bytes) -> None:
    grinding(app, [])
    with pytest.raises(InvalidJob, match="not the payload of a task"):
        app.resolve(Job(payload=stored))


def test_a_worker_that_was_not_told_where_leaves_the_job_to_others(app: App) -> None:
    grinding(app, []).enqueue(LARGE)
    stranger = App("memory://")
    grinding(stranger, [])
    job = app.queue().dequeue(timeout=0)
    assert job is not None
    with pytest.raises(Unserved, match="no outside="):
        stranger.resolve(job)


@pytest.mark.parametrize("is_async", [True, False])
def test_fetching_blocks_nobody_else_and_counts_into_the_timeout(app: App, folder: Path, is_async: bool) -> None:
    ground = threading.Event()

    def grind(grain: str) -> None: ...

    async def grind_async(grain: str) -> None: ...

    slow = app.task(name="grind", timeout=0.2, max_attempts=1)(grind_async if is_async else grind)

    @app.task
    async def quick() -> None:
        ground.set()

    slow.enqueue(LARGE)
    (path,) = kept(folder)
    path.unlink()
    os.mkfifo(path)  # whoever opens it waits for somebody who writes
    with working(app.pool(workers=2)):
        wait_until(lambda: app.queue().stats().inflight == 1)
        quick.enqueue()
        assert ground.wait(10.0)
        wait_until(lambda: app.queue().stats().dead == 1)
        path.write_bytes(b"late")
    assert [dead.last_error for dead in app.queue().dead()] == ["timed out after 0.2 s"]


# Settings


@pytest.mark.parametrize(
    "outside", ["", "/mnt/shared", 5, b"file:///mnt", "file://mnt/shared", "nosuch://barn", "s3://b"]
)
def test_an_odd_place_is_refused_when_the_app_is_made(outside: Any) -> None:
    with pytest.raises(ConfigError, match=r"^outside: "):
        App("memory://", outside=outside)


def test_a_refused_place_is_not_repeated_for_it_may_hold_a_password() -> None:
    with pytest.raises(ConfigError) as caught:
        App("memory://", outside="nosuch://miller:hunter2@barn/grain")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("above", [-1, 1.5, True, None, "64k"])
def test_an_odd_limit_is_refused_when_the_app_is_made(folder: Path, above: Any) -> None:
    with pytest.raises(ConfigError, match=r"^outside_above: "):
        App("memory://", outside=f"file://{folder}", outside_above=above)


def test_an_app_that_keeps_nothing_outside_does_not_load_the_library() -> None:
    code = "import sys, headrace; headrace.App('memory://').queue(); print('fsspec' in sys.modules)"
    source = str(Path(headrace.__file__).parents[1])
    env = os.environ | {"PYTHONPATH": source}
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=env).stdout
    assert shown == "False\n"


def test_without_the_library_the_app_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ConfigError, match=r"pip install 'headrace\[outside\]'"):
        App("memory://", outside=f"file://{folder}")
