"""A file that is removed, or exchanged for another one, while a queue has it open."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlite_files import lease

from headrace import Job, LeaseLost, Queue
from headrace.sqlite.queue import queue_names

Open = Callable[..., Queue]


def remove(path: Path) -> None:
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()


def test_what_is_enqueued_after_the_file_was_removed_is_in_the_new_one(
    opened: Open, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    queue = opened()
    queue.enqueue(Job(id="old"))
    held = lease(queue)
    remove(path)
    queue.enqueue(Job(id="new"))
    assert lease(opened()).id == "new"
    with pytest.raises(LeaseLost):
        queue.ack(held)
    assert [record.getMessage().count("removed or replaced") for record in caplog.records] == [1]


def test_a_waiter_notices_that_its_file_was_removed(opened: Open, path: Path) -> None:
    queue = opened()
    got: list[Job | None] = []
    waiter = threading.Thread(target=lambda: got.append(queue.dequeue(timeout=10)))
    waiter.start()
    remove(path)
    opened(queue="other")  # makes the file anew
    opened().enqueue(Job(id="new"))
    waiter.join(10)
    assert [job and job.id for job in got] == ["new"]


def test_looking_for_queues_changes_nothing_in_a_foreign_file(path: Path) -> None:
    import sqlite3

    foreign = path.with_name("foreign.db")
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    before = foreign.read_bytes()
    assert queue_names(str(foreign)) == []
    assert foreign.read_bytes() == before
