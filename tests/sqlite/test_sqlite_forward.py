"""F05 for the one call that concerns two queues: whatever fails, the job is in exactly one of them."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from children import Child, ChildFailed
from faults import Faulty, Plan, following
from sqlite_files import lease, open_at

from headrace.errors import Unavailable
from headrace.job import Job
from headrace.queue import Queue
from headrace.testing import VirtualClock


class Scene:
    """A file with a leased job in one queue; the other has a job that was late in coming, and is full but for it."""

    def __init__(self, folder: Path) -> None:
        self.clock = VirtualClock()
        self.original, self.path = folder / "scene.db", folder / "jobs.db"
        with self.open(self.original, "here") as here, self.open(self.original, "there") as there:
            here.enqueue(Job(b"x", id="a"))
            self.job = lease(here)
            there.enqueue_many([Job(id="old"), Job(id="late", delay=5.0)])
            self.clock.advance(6.0)

    def open(self, path: Path, name: str) -> Any:
        return open_at(path, queue=name, clock=self.clock, capacity=2, overflow="drop_oldest")

    def fresh(self) -> None:
        for suffix in ("-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        shutil.copy(self.original, self.path)

    def forward(self, plan: Plan) -> None:
        """The call alone follows the plan, not the opening."""
        with following(Plan()), self.open(self.path, "here") as here, self.open(self.path, "there") as there:
            there.store.open()
            Faulty.plan = plan
            try:
                here.forward(self.job, there)
            finally:
                Faulty.plan = Plan()

    def moved(self) -> bool:
        """Whether it is there and not here; else it must be here and not there, and nothing have changed."""
        with self.open(self.path, "here") as here, self.open(self.path, "there") as there:
            books = here.stats(), there.stats()
            assert [each.unaccounted for each in books] == [0, 0]
            found = [queue.find("a") is not None for queue in (here, there)]
            dropped = there.find("old") is None
        assert found in ([True, False], [False, True])
        assert dropped == found[1]
        return found[1]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.fixture
def statements(scene: Scene) -> list[str]:
    scene.fresh()
    plan = Plan()
    scene.forward(plan)
    assert scene.moved()
    return plan.statements


@pytest.mark.parametrize(
    "fault", [{"code": sqlite3.SQLITE_FULL}, {"code": sqlite3.SQLITE_IOERR, "after": True}], ids=["before", "after"]
)
def test_a_failing_statement_leaves_the_job_in_one_queue(
    scene: Scene, statements: list[str], fault: dict[str, Any]
) -> None:
    commit = statements.index("COMMIT")
    for k in range(len(statements)):
        scene.fresh()
        try:
            scene.forward(Plan(k, **fault))
            assert k > commit  # to wake who waits over there is no more than a courtesy
        except Unavailable:
            assert k <= commit
        assert scene.moved() == (k > commit or (k == commit and "after" in fault))


def test_a_lock_that_is_held_for_a_while_is_waited_for(scene: Scene, statements: list[str]) -> None:
    for k in range(len(statements)):
        scene.fresh()
        scene.forward(Plan(k, code=sqlite3.SQLITE_BUSY, times=3))
        assert scene.moved()


def test_a_process_killed_at_any_statement_leaves_the_job_in_one_queue(scene: Scene, statements: list[str]) -> None:
    commit = statements.index("COMMIT")
    for k in range(len(statements)):
        scene.fresh()
        with pytest.raises(ChildFailed, match="without a word: -9"):
            Child(scene.forward, Plan(k, kill=True)).result()
        assert scene.moved() == (k > commit)


def test_the_target_is_opened_where_it_was_not_yet(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with open_at(path, queue="here") as here:
        here.enqueue(Job(id="a"))
        fresh: Queue = open_at(path, queue="there").as_async.as_sync
        here.forward(lease(here), fresh)
        assert fresh.stats().ready == 1
        fresh.close()


def test_one_file_by_two_names_is_one_file(tmp_path: Path) -> None:
    path, link = tmp_path / "jobs.db", tmp_path / "link.db"
    with open_at(path, queue="here") as here:
        link.symlink_to(path)
        here.enqueue(Job(id="a"))
        with open_at(link, queue="there") as there:
            here.forward(lease(here), there)
            assert there.stats().ready == 1
