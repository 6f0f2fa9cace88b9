"""Connections to one server: lent for one step at a time, replaced when they break, and never waited for for ever.

A server restarts, a network freezes, a failover makes the database read-only for a while. Whatever can be waited
out is, with growing pauses and for a bounded time; then the caller learns in words what was wrong. A step whose
connection broke under it may have been committed or not: it is told that it runs ``again`` (see ``once.py``).
"""

from __future__ import annotations

import os
import random
import re
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, TypeVar
from urllib.parse import unquote
from weakref import WeakValueDictionary

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from .. import fork
from ..errors import ConfigError, HeadraceError, StorageFull, Unavailable
from ..settings import Settings
from . import arrays
from .options import OPTIONS
from .server_clock import is_here

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]
Cursor = psycopg.Cursor[tuple[Any, ...]]
_IDLE = psycopg.pq.TransactionStatus.IDLE

_DEFAULTS = {
    "connect_timeout": "5",
    "application_name": "headrace",
    "tcp_user_timeout": "10000",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
}
PLANNER = {
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
    **dict.fromkeys([f"enable_{way}" for way in ("hashjoin", "mergejoin", "bitmapscan", "sort", "seqscan")], "off"),
}
"""All our statements are to walk an index as far as their batch goes, and have one plan for that. A planner that has no
statistics yet, as with new tables, likes to read the whole table instead."""
_SETTINGS = {
    "default_transaction_isolation": "read committed",
    "idle_in_transaction_session_timeout": "30s",
    **PLANNER,
}
_SET = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in _SETTINGS.items())
_SESSION = f"SELECT {_SET}, set_config('statement_timeout', %s, false) WHERE pg_backend_pid() = %s".encode()
"""For a session that is ours alone: the next one to use another's would wonder. A statement that nobody waits for any
more, because a lock took too long, is not to happen later."""
_AT_ONCE = {"40001", "40P01"}
"""Two transactions met in an unlucky order; the next try finds the other one done."""
_PASSING = {"25006", "53100", "53200", "53300", "55P03", "57014", "57P01", "57P02", "57P03", "57P05", "58030"}
"""Read-only, disk full, memory full, too many connections, locked, cancelled, shut down, starting up, disk error."""
NOT_ALLOWED = "42501"
_IN_VAIN = re.compile(
    r"password authentication failed|no password supplied|no pg_hba\.conf entry|(role|database) \".*\" does not exist"
    r"|permission denied for database|not permitted to log in|does not support SSL|invalid .*value"
    r"|unsupported startup parameter|no such database",
    re.DOTALL,
)
"""Why no connection came about, where waiting does not help. The driver has no codes for it, only words; what a server
says in another language is waited for like anything else."""
_NONE_LEFT = re.compile("too many clients|too many connections|connection slots are reserved")
_LOOK = 0.5
"""Seconds between two looks for steps that hang."""
_GRACE = 1.0
"""Seconds beyond its patience for which a step may last that has begun."""


class Stock:
    """Lends connections to the threads of this process, at most ``size`` at a time."""

    def __init__(self, dsn: str, size: int, patience: float) -> None:
        self.dsn = dsn
        self.patience = patience
        self._size = size
        self.direct = True
        """Each connection is a session of its own; False behind a pooler that shares sessions between clients."""
        given = conninfo_to_dict(dsn)
        host = str(given.get("hostaddr") or given.get("host") or "")
        self.here = is_here(host)
        """The server is on this machine."""
        self._several = "," in host
        self._handles = 0
        self._begin()
        fork.register(self)

    def _begin(self) -> None:
        self._idle: list[Connection] = []
        weakref.finalize(self, _close_all, self._idle)
        self._places = threading.BoundedSemaphore(self._size)
        self._lock = threading.Lock()
        self._under_way: dict[Connection, float] = {}
        self._guard: threading.Thread | None = None

    @property
    def pipelines(self) -> bool:
        """Statements may be sent before the last one is answered, as one transaction."""
        return self.direct and psycopg.Pipeline.is_supported()

    def join(self) -> None:
        """One handle more uses it."""
        with self._lock:
            self._handles += 1

    def leave(self) -> None:
        """One less. The last one leaves no connection behind, and steps after that close theirs."""
        with self._lock:
            self._handles -= 1
            last = not self._handles
        if last:
            self.drop()

    def run(self, step: Callable[[Connection, bool], T]) -> T:
        """``step(connection, again)``, tried until it succeeds, fails by its own fault, or patience ends."""
        give_up = time.monotonic() + self.patience
        pause, again = 0.02, False
        while True:
            begun = broken = False
            try:
                with self._place(give_up):
                    connection = self._lend(give_up)
                    begun = True
                    try:
                        return step(connection, again)
                    finally:
                        broken = connection.broken
                        self._take_back(connection)
            except psycopg.Error as error:
                code = error.sqlstate or ""
                if code in _AT_ONCE and time.monotonic() < give_up:
                    continue
                if code == NOT_ALLOWED:
                    raise self.not_allowed(error.diag.message_primary) from error
                if begun and not broken and code not in _PASSING and code not in _AT_ONCE:
                    raise
                # Of several hosts another one may let us in when it is back.
                if not begun and not self._several and _IN_VAIN.search(str(error)):
                    raise self._in_vain(error) from error
                again = again or begun
                if time.monotonic() + pause > give_up:
                    raise self._in_words(error) from error
                if code in _PASSING:
                    self.drop()
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, 1.0)

    @contextmanager
    def _place(self, give_up: float) -> Iterator[None]:
        # Who waited for long has one try all the same, so that it hears what is wrong.
        if not self._places.acquire(timeout=max(_LOOK, give_up - time.monotonic())):
            raise Unavailable(f"{masked(self.dsn)}: all {self._size} connections of this process are busy")
        try:
            yield
        finally:
            self._places.release()

    def _lend(self, give_up: float) -> Connection:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        connection = connection or self.open()
        self._limit(connection, give_up + _GRACE)
        return connection

    def _limit(self, connection: Connection, until: float) -> None:
        with self._lock:
            self._under_way[connection] = until
            if self._guard is None:
                self._guard = threading.Thread(target=self._watch, name="headrace-postgres-guard", daemon=True)
                self._guard.start()

    @contextmanager
    def limited(self, connection: Connection, seconds: float) -> Iterator[None]:
        """A connection that is not of the stock is cut when what happens in here takes longer."""
        self._limit(connection, time.monotonic() + seconds)
        try:
            yield
        finally:
            with self._lock:
                del self._under_way[connection]

    def _take_back(self, connection: Connection) -> None:
        with self._lock:
            del self._under_way[connection]
            whole = not connection.closed and connection.info.transaction_status == _IDLE
            if whole and self._handles:
                self._idle.append(connection)
                return
        connection.close()

    def open(self, dsn: str | None = None) -> Connection:
        """A new connection, not of the stock."""
        connection = psycopg.connect(dsn or self.dsn, autocommit=True)
        arrays.register(connection)
        given = [f"{self.patience + 0.9 * _GRACE:.1f}s", connection.info.backend_pid]
        if connection.execute(_SESSION, given).fetchone() is None:
            self.direct = False
            connection.prepare_threshold = None  # the next transaction may be in another session
        return connection

    def drop(self) -> None:
        """Close what idles: it may lead to a server that is not the one any more."""
        with self._lock:
            idle = list(self._idle)
            self._idle.clear()
        _close_all(idle)

    def _watch(self) -> None:
        """A server that hangs answers nothing, and says nothing either: end the connections to it from this side."""
        while True:
            time.sleep(_LOOK)
            now = time.monotonic()
            with self._lock:
                if not self._under_way:
                    self._guard = None
                    return
                late = [connection for connection, until in self._under_way.items() if until < now]
                for connection in late:
                    self._under_way[connection] = now + self.patience
                    _cut(connection)

    def not_allowed(self, said: str | None) -> ConfigError:
        return ConfigError(
            f"{masked(self.dsn)}: this user may not do that ({said}): GRANT it USAGE on the "
            "schema and on its sequences, and SELECT, INSERT, UPDATE, DELETE on its tables"
        )

    def _in_vain(self, error: psycopg.Error) -> Unavailable:
        return Unavailable(
            f"{masked(self.dsn)}: no way in ({_line(error)}): look at the user, the password, the database and the "
            "parameters in the URL"
        )

    def _in_words(self, error: psycopg.Error) -> HeadraceError:
        said = _line(error)
        where = masked(self.dsn)
        if error.sqlstate == "53100":
            return StorageFull(f"{where}: the server's disk is full ({said}); free some and try again")
        reasons = {
            "25006": "is read-only: a standby, or a failover that is not over",
            "53300": "has no connection left (raise max_connections, or put a pooler before it)",
            "55P03": "is locked by somebody else",
            "57014": "cancelled the step",
            "40001": "had other transactions in the way, again and again",
            "40P01": "had deadlocks in the way, again and again",
        }
        code = error.sqlstate or ("53300" if _NONE_LEFT.search(said) else "")
        reason = reasons.get(code, "did not answer")
        return Unavailable(f"{where}: {reason}, for {self.patience:g} s now ({said})")

    def before_fork(self) -> None:
        pass

    def after_fork_in_parent(self) -> None:
        pass

    def after_fork_in_child(self) -> None:
        # The parent's: not to be closed here, nor forgotten.
        _inherited.append([*self._idle, *self._under_way])
        self._idle.clear()
        self._begin()


_inherited: list[list[Connection]] = []
_stocks: WeakValueDictionary[tuple[str, int, float], Stock] = WeakValueDictionary()


def stock(dsn: str, size: int, patience: float) -> Stock:
    """One stock for all handles of this process that ask alike."""
    try:
        given = {name: value for name, value in conninfo_to_dict(dsn).items() if value is not None}
    except psycopg.ProgrammingError:  # what it says repeats the URL, and a password with it
        _refuse_unknown(dsn)
        raise ConfigError(
            "url: postgresql://… cannot be read: write postgresql://user:password@host:port/database?sslmode=…, "
            "with what is special in a password percent-encoded"
        ) from None
    whole = make_conninfo("", **{**_DEFAULTS, **given})
    return _stocks.setdefault((whole, size, patience), Stock(whole, size, patience))


def _refuse_unknown(dsn: str) -> None:
    """ConfigError that names a setting which neither the driver nor Headrace knows."""
    query = dsn.partition("?")[2]
    if "@" in query:
        return  # it is no query, but the rest of a password
    ours = (*Settings.__struct_fields__, *OPTIONS)
    known = [*ours, *(option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults())]
    for name in [unquote(pair.partition("=")[0]) for pair in query.split("&") if pair]:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise ConfigError(
                f"url: {name}: no such setting{hint}; there are {', '.join(ours)}, and the driver's, such as sslmode"
            )


def _line(error: psycopg.Error) -> str:
    return " ".join(str(error).split())


def masked(dsn: str) -> str:
    """Where it leads, without what nobody should read."""
    given = conninfo_to_dict(dsn)
    host, port, name = (given.get(key) for key in ("host", "port", "dbname"))
    return f"postgresql://{host or ''}{f':{port}' if port else ''}/{name or ''}"


def _close_all(connections: list[Connection]) -> None:
    while connections:
        connections.pop().close()


def _cut(connection: Connection) -> None:
    try:
        with socket.socket(fileno=os.dup(connection.fileno())) as wire:
            wire.shutdown(socket.SHUT_RDWR)
    except (OSError, psycopg.Error):
        pass
