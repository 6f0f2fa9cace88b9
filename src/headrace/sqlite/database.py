"""One connection to one file: pragmas, transactions that wait their turn, and errors in words.

A transaction that may write takes the write lock when it begins: one that reads first and writes later can
find that somebody else has committed in between, and SQLite then answers BUSY at once, whatever the timeout. A
lock that is held is waited for here, in short random naps and for a bounded time, because SQLite's own wait
goes to sleep for 100 ms at a time when several processes compete.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ..errors import HeadraceError, StorageFull, Unavailable

T = TypeVar("T")

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_FULL = {sqlite3.SQLITE_FULL}
# A file that may not grow (a quota, a limit of the process) shows as a write error.
_FULL_EXTENDED = {sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_SHMSIZE}


class Database:
    """Not safe for use by two threads at once: the store has the lock."""

    def __init__(self, path: str, synchronous: str, patience: float, read_only: bool = False) -> None:
        self.path = os.path.abspath(path)
        self.synchronous = synchronous
        self.patience = patience
        self._read_only = read_only
        self._connection: sqlite3.Connection | None = None
        self._file = (0, 0)
        """Which file the connection has open: device and inode."""

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """``work`` on one consistent snapshot; it must not write."""
        return self._transaction("BEGIN", work)

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """``work`` with the write lock, committed when it returns, undone when it raises."""
        return self._transaction("BEGIN IMMEDIATE", work)

    def version(self) -> int:
        """A number that changes when another connection has committed. Takes microseconds, never waits."""
        if self._connection is None:
            return -1
        try:
            version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error:
            return -1
        return version

    def gone(self) -> bool:
        """Has the file that is open been removed, or another one put in its place? Whoever went on writing to it
        would lose every job without a word."""
        return self._connection is not None and _identity(self.path) != self._file

    def close(self) -> None:
        """Let go of the file; the next transaction opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _transaction(self, begin: str, work: Callable[[sqlite3.Connection], T]) -> T:
        give_up = time.monotonic() + self.patience
        while True:
            try:
                connection = self._connection or self._open()
                connection.execute(begin)
                try:
                    result = work(connection)
                    connection.execute("COMMIT")
                    return result
                except BaseException:
                    self._undo(connection)
                    raise
            except sqlite3.Error as error:
                code = primary(error)
                if code == 0:
                    raise  # not the file's fault but this program's
                if code not in _BUSY:
                    raise self._in_words(error) from error
                if time.monotonic() > give_up:
                    raise Unavailable(
                        f"{self.path}: locked by another process for more than {self.patience:g} s; "
                        "find who holds a write transaction open, or raise busy_timeout"
                    ) from error
                time.sleep(random.uniform(0.0003, 0.004))

    def _undo(self, connection: sqlite3.Connection) -> None:
        """SQLite ends some failed transactions by itself; one that cannot be ended ends with its connection."""
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self.close()

    def _open(self) -> sqlite3.Connection:
        folder = os.path.dirname(self.path)
        if not os.path.isdir(folder):
            raise Unavailable(f"{self.path}: the folder {folder} does not exist; make it first")
        if os.path.isdir(self.path):
            raise Unavailable(f"{self.path}: is a folder, not a file")
        name = f"{Path(self.path).as_uri()}?mode={'ro' if self._read_only else 'rwc'}"
        connection = sqlite3.connect(name, timeout=0, isolation_level=None, check_same_thread=False, uri=True)
        try:
            if not self._read_only:
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {self.synchronous}")
            connection.execute("PRAGMA temp_store = MEMORY")  # else every claim makes a file of its own
            connection.execute("PRAGMA cache_size = -32768")
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self._file = _identity(self.path)
        return connection

    def _in_words(self, error: sqlite3.Error) -> HeadraceError:
        code = primary(error)
        if code in _FULL or error.sqlite_errorcode in _FULL_EXTENDED:
            return StorageFull(f"{self.path}: no room to write ({error}); nothing was changed; free some and try again")
        reasons = {
            sqlite3.SQLITE_CANTOPEN: "cannot be opened: is its folder there, and may it be written to?",
            sqlite3.SQLITE_READONLY: "cannot be written: the file, its folder or the file system is read-only",
            sqlite3.SQLITE_NOTADB: "is not an SQLite database: is it the right file?",
            sqlite3.SQLITE_CORRUPT: "is damaged: run 'PRAGMA integrity_check', restore a backup",
            sqlite3.SQLITE_IOERR: "the disk answers with an error",
        }
        return Unavailable(f"{self.path}: {reasons.get(code, 'failed')} ({error})")


def _identity(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def primary(error: sqlite3.Error) -> int:
    """SQLite's primary result code: the extended one without its upper bits."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def file_key(path: str) -> str:
    """One name for one file, however it is written."""
    return os.path.realpath(path)
