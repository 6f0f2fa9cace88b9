"""F05: whatever statement fails, and whenever the process dies, each transaction has happened wholly or not at all.

Every call of ``crossroads`` is made once unharmed, with a picture of the file before it and after each commit. Then it
is made again for each of its statements, with a fault there; the file must show the picture that goes with the
number of commits, and a clean process must get every job in it exactly once.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import raw
from children import Child, ChildFailed
from crossroads import CALLS, Scene, build, run_dry
from faults import Plan, following
from sqlite_files import drain, lease, open_at

from headrace.errors import StorageFull, Unavailable
from headrace.job import Job

FULL, IOERR, BUSY = sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY


class Case(NamedTuple):
    name: str
    scene: Scene
    pictures: list[raw.Picture]
    """Before the call, and after each commit."""
    statements: list[str]
    file: Path

    def call(self) -> None:
        CALLS[self.name][1](self.scene, self.file)

    def fresh(self) -> None:
        self.scene.copy(self.file)

    @property
    def points(self) -> range:
        """Where to strike; what every call begins with, the opening, is the business of one case alone."""
        return range(0 if self.name == "reopen" else self.statements.index("COMMIT") + 1, len(self.statements))

    def check(self, commits: int) -> None:
        raw.check(self.file)
        assert raw.picture(self.file) == self.pictures[commits]

    def check_that_all_can_be_done(self) -> None:
        found = raw.picture(self.file)
        cancelled = Counter(row.id for row in found.rows if row.place == "inflight" and row.cancelled)
        assert Counter(run_dry(self.scene, self.file)) == found.ids() - cancelled


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is such a place: a thousand closes are a thousand flushes of a disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as made:
        yield Path(made)


@pytest.fixture(params=CALLS)
def case(request: pytest.FixtureRequest, folder: Path) -> Case:
    scene = build(folder / "scene.db", CALLS[request.param][0])
    made = Case(request.param, scene, [raw.picture(scene.file)], [], folder / "jobs.db")
    made.fresh()
    plan = Plan()
    plan.on_commit = lambda: made.pictures.append(raw.picture(made.file))
    with following(plan):
        made.call()
    made.statements.extend(plan.statements)
    made.check(len(made.pictures) - 1)
    made.check_that_all_can_be_done()
    return made


@pytest.mark.parametrize(
    "fault",
    [
        {"code": FULL},
        {"code": IOERR, "after": True},
    ],
    ids=["full", "error_after_effect"],
)
def test_a_failing_statement_leaves_whole_transactions_behind(case: Case, fault: dict[str, Any]) -> None:
    """F05 (a) and (b): the caller hears of it in words, and nobody is left with half a change or a lock."""
    error = StorageFull if fault["code"] == FULL else Unavailable
    for k in case.points:
        case.fresh()
        with following(Plan(k, **fault)) as plan, pytest.raises(error):
            case.call()
        case.check(plan.commits)


def test_a_lock_that_is_held_for_a_while_is_waited_for_at_every_statement(case: Case) -> None:
    """F05, F27: the caller never hears of it, and nothing is done twice."""
    for k in case.points:
        case.fresh()
        with following(Plan(k, code=BUSY, times=3)):
            case.call()
        case.check(len(case.pictures) - 1)


def test_a_transaction_that_writes_takes_the_write_lock_when_it_begins(case: Case) -> None:
    """F27: one that reads first and is refused the lock later has worked for nothing, as often as others commit."""
    begin = ""
    for statement in case.statements:
        begin = statement if statement.startswith("BEGIN") else begin
        if statement.startswith(("INSERT", "UPDATE", "DELETE")):
            assert begin == "BEGIN IMMEDIATE", statement


def test_a_process_killed_at_any_statement_leaves_whole_transactions_behind(case: Case) -> None:
    """F05: the real thing, with SIGKILL, before each statement and after the last."""

    def child(k: int, after: bool) -> None:
        with following(Plan(k, after=after, kill=True)):
            case.call()

    for k, after in [*((k, False) for k in case.points), (case.points[-1], True)]:
        case.fresh()
        killed = Child(child, k, after)
        with pytest.raises(ChildFailed, match="without a word: -9"):
            killed.result()
        case.check(case.statements[: k + after].count("COMMIT"))
        case.check_that_all_can_be_done()


def test_a_handle_works_on_after_each_fault(tmp_path: Path) -> None:
    """F05: the same handle, with no help from anyone, once the trouble is over."""
    path = tmp_path / "jobs.db"
    with following(Plan()):
        queue = open_at(path)
        k, struck = 0, True
        while struck:
            for times, code in ((1, FULL), (2, IOERR), (5, IOERR)):  # the rollback fails too, and what comes then
                with following(Plan(k, code=code, times=times)) as plan:
                    try:
                        queue.enqueue(Job(b"x"))
                        queue.nack(lease(queue))
                        queue.ack(lease(queue))
                        struck = False
                    except Unavailable:
                        struck = True
                assert len(plan.statements) > k or not struck
                drained = len(drain(queue))
                raw.check(path)
                assert drained <= 2
            k += 1
        assert k > 10
        assert queue.stats().unaccounted == 0
        queue.close()
