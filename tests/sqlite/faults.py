"""A connection that fails, or ends the process, at its n-th statement: before it takes effect or after."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

WORDS = {
    sqlite3.SQLITE_FULL: "database or disk is full",
    sqlite3.SQLITE_IOERR: "disk I/O error",
    sqlite3.SQLITE_BUSY: "database is locked",
}


class Plan:
    """``at`` counts from 0; ``times`` statements in a row fail, beginning there."""

    def __init__(self, at: int = -1, *, after: bool = False, code: int = 0, times: int = 1, kill: bool = False) -> None:
        self.failing = range(at, at + times) if at >= 0 else range(0)
        self.after = after
        self.code = code
        self.kill = kill
        self.statements: list[str] = []
        self.commits = 0
        """How many transactions have taken effect."""
        self.on_commit: Callable[[], object] = lambda: None

    def strike(self) -> None:
        if self.kill:
            os.kill(os.getpid(), signal.SIGKILL)
        error = sqlite3.OperationalError(WORDS[self.code])
        error.sqlite_errorcode = self.code
        raise error


class Faulty(sqlite3.Connection):
    plan = Plan()

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        return self._run(sql, super().execute, sql, *args)

    def executemany(self, sql: str, *args: Any) -> sqlite3.Cursor:
        return self._run(sql, super().executemany, sql, *args)

    def _run(self, sql: str, call: Any, *args: Any) -> sqlite3.Cursor:
        plan = Faulty.plan
        fails = len(plan.statements) in plan.failing
        plan.statements.append(" ".join(sql.split()))
        if fails and not plan.after:
            plan.strike()
        cursor: sqlite3.Cursor = call(*args)
        if sql == "COMMIT":
            plan.commits += 1
            plan.on_commit()
        if fails:
            cursor.fetchall()  # of what returns rows, the effect is whole when the last was read
            plan.strike()
        return cursor


@contextmanager
def following(plan: Plan) -> Iterator[Plan]:
    """While this lasts, every new connection obeys ``plan``; those that are open already too, if they are Faulty."""
    real = sqlite3.connect

    def connect(*args: Any, **given: Any) -> sqlite3.Connection:
        return real(*args, **given, factory=Faulty)

    sqlite3.connect = connect  # type: ignore[assignment]  # all its parameters are passed on
    Faulty.plan = plan
    try:
        yield plan
    finally:
        Faulty.plan = Plan()
        sqlite3.connect = real
