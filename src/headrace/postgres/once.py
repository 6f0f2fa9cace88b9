"""A transaction that is carried out once, though the answer to its COMMIT may be lost.

Whether it was committed then, nobody can tell by what is in the tables: others go on meanwhile, and a job that we gave
back may be in other hands, or gone. But the server remembers what became of each transaction. So its number is known
here before the COMMIT, and so is what it did: when the answer does not come, the next try asks, and says what the
first one would have said.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import psycopg

from .connections import Connection

T = TypeVar("T")

PAUSE = 0.02
"""Seconds between two looks at a transaction that has not ended yet."""


def once(work: Callable[[Connection, bool], tuple[T, int | None]]) -> Callable[[Connection, bool], T]:
    """A step for ``Stock.run``. ``work(connection, again)`` returns its result and the number of its transaction; None:
    it wrote nothing that could not be written again."""
    open_ends: list[tuple[T, int]] = []

    def step(connection: Connection, again: bool) -> T:
        if open_ends:
            result, number = open_ends[0]
            if committed(connection, number):
                return result
        with connection.transaction():
            result, known = work(connection, again)
            open_ends[:] = [] if known is None else [(result, known)]
        return result

    return step


def committed(connection: Connection, number: int) -> bool:
    """Waits for its end, should it still be under way."""
    while True:
        try:
            row = connection.execute("SELECT txid_status(%s)", [number]).fetchone()
        except psycopg.errors.InvalidParameterValue:  # a server took over that never heard of it
            return False
        if row != ("in progress",):
            return row == ("committed",)
        time.sleep(PAUSE)
