"""An app opens nothing before it is used, keeps one queue a name, and shows no secrets."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from headrace.app import App
from headrace.errors import ConfigError, QueueClosed
from headrace.queue import Queue


def add(a: int) -> None: ...


def test_url_is_the_argument_then_the_environment_then_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_URL", raising=False)
    app, fixed = App(), App("memory://")
    assert app.url == "sqlite:///headrace.db"
    monkeypatch.setenv("HEADRACE_URL", "memory://?capacity=7")
    assert app.queue().settings.capacity == 7
    assert (app.url, fixed.url) == ("memory://?capacity=7", "memory://")


def test_making_an_app_and_its_tasks_opens_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = App("sqlite:///jobs.db")
    app.task(add).job(1)
    app.close()
    assert list(tmp_path.iterdir()) == []


def test_settings_reach_every_queue() -> None:
    with App("memory://", capacity=3, lease=5.0) as app:
        for name in ("default", "mail"):
            settings = app.queue(name).settings
            assert (settings.queue, settings.capacity, settings.lease) == (name, 3, 5.0)


def test_queue_is_opened_once_whoever_asks() -> None:
    with App("memory://") as app:
        barrier, found = threading.Barrier(8), list[Queue]()

        def ask() -> None:
            barrier.wait()
            found.append(app.queue("mail"))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 8
        assert all(each is found[0] for each in found)
        assert app.queue() is not found[0]


def test_closing_an_app_closes_its_queues() -> None:
    app = App("memory://")
    with app:
        queues = [app.queue(), app.queue("mail")]
    for queue in queues:
        with pytest.raises(QueueClosed):
            queue.dequeue(timeout=0)
    with pytest.raises(QueueClosed, match="the app is closed"):
        app.task(add).enqueue(1)
    app.close()


async def test_async_callers_meet_a_closed_app_too() -> None:
    app = App("memory://")
    app.close()
    with pytest.raises(QueueClosed):
        await app.task(add).enqueue_async(1)


def test_entering_a_closed_app_opens_it_again() -> None:
    app = App("memory://")
    app.close()
    with app:
        app.task(add).enqueue(1)
        assert app.queue().stats().ready == 1


@pytest.mark.parametrize("url", ["", 5, b"memory://"])
def test_what_is_no_url_is_refused_at_once(url: str) -> None:
    with pytest.raises(ConfigError, match="url: "):
        App(url)


def test_queue_name_belongs_to_the_task() -> None:
    with pytest.raises(ConfigError, match="queue: each task names its own"):
        App("memory://", queue="mail")


def test_bad_queue_name_is_refused() -> None:
    with App("memory://") as app, pytest.raises(ConfigError, match="queue: "):
        app.queue("drop table")


SECRETS = ("S3cr3t", "S3cr3t%2Fp%40ss", "p@ss word")


@pytest.mark.parametrize(
    "url",
    ["postgresql://me:S3cr3t%2Fp%40ss@db/jobs", "postgresql://me:S3cr3t/p@ss word@db/jobs", "postgresql://db?password=S3cr3t"],
)  # fmt: skip
def test_password_is_never_shown(url: str) -> None:
    app = App(url)
    task = app.task(add)
    shown = [repr(app), repr(task), repr(task.options(id="x")), str(app), repr(app.tasks)]
    with pytest.raises(Exception, match=r".") as caught:
        app.queue()
    shown.append(str(caught.value))
    assert not [text for text in shown for secret in SECRETS if secret in text]


def test_pool_of_a_task_that_cannot_run_is_refused() -> None:
    with App("memory://") as app:
        app.task(process=True)(lambda: None)
        with pytest.raises(TypeError, match="a process cannot import it"):
            app.pool()


def test_pool_of_an_app_without_tasks_is_refused() -> None:
    with App("memory://") as app, pytest.raises(ConfigError, match="no tasks to run; import the modules"):
        app.pool()


def test_pool_of_a_queue_that_no_task_goes_to_is_made_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with App("memory://") as app:
        app.task(queue="reports")(add)
        app.task(queue="mail", name="other")(add)
        app.pool("mail")
        assert not caplog.records
        app.pool("mial")
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage() == "no task of this app goes to queue 'mial'; its tasks go to mail, reports"


def test_pool_of_a_bad_queue_name_is_refused_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with App("memory://") as app:
        app.task(add)
        with pytest.raises(ConfigError, match="drop table"):
            app.pool("drop table")
    assert not caplog.records
