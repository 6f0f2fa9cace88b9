"""One handle on a queue in PostgreSQL: where the queue is, what time it is there, and how a step is carried out."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from .. import fork
from ..clock import FAR, SECOND, SystemClock
from ..errors import ConfigError
from ..job import Job
from ..settings import Settings
from ..timeline import step as calendar_step
from ..waiting import Rooms
from . import schema as tables
from .bell import bell
from .connections import Connection, Stock, masked
from .hint import FRONT, Hint
from .once import once
from .options import Options
from .ready import Ready
from .server_clock import ServerClock
from .statements import statements
from .step import Step

log = logging.getLogger("headrace.postgres")
T = TypeVar("T")


class Connected:
    """Safe for many threads: each step borrows a connection."""

    def __init__(
        self,
        settings: Settings,
        stock: Stock,
        options: Options,
        rooms: Rooms,
        *,
        own_clock: bool,
    ) -> None:
        self.settings = settings
        self.rooms = rooms
        self.stock = stock
        self.schema = options.schema
        self.sql = statements(self.schema)
        self._own_clock = own_clock
        self._make = options.migrate
        self._poll = round(options.poll * SECOND)
        self._patience = round((stock.patience + 1) * SECOND)
        self.ack_name = "ack_archive" if options.archive else "ack"
        keeps = {"archive": options.archive, "dead": options.dead_keep}
        self._keeps = {name: keep for name, keep in keeps.items() if keep}
        """For how long, in microseconds; what is in none of these stays."""
        self._opening = threading.Lock()
        self._sweeping = threading.Lock()
        self.queue = 0
        """Its number in the schema; 0: not opened yet."""
        self._salt = 0
        self.bell = 0
        """The advisory lock that a sleeping worker holds: who enqueues meanwhile rings."""
        self._anchor = self._skew = 0
        self._server = ServerClock()
        self._moved = 0
        """By how much somebody moved the server's clock, as long as nothing was done about it."""
        self._hint = Hint()
        # What the last step saw.
        self._ready = Ready()
        self.room = settings.capacity
        self._credit = 0
        self._credit_until = 0
        self._soonest = FAR
        self._look_at = 0
        self._fold_at = 0
        self._closed = False
        stock.join()
        self._bell = None if own_clock else bell(stock, self.channel, options.direct)
        if self._bell is not None:
            self._bell.add(self)
        fork.register(self)

    def __repr__(self) -> str:
        return masked(self.stock.dsn)

    @property
    def channel(self) -> str:
        return f"headrace_{self.schema}"

    @property
    def given(self) -> dict[str, object]:
        """What every statement takes."""
        return {
            "queue": self.queue,
            "now": self._now,
            "salt": self._salt,
            "bell": self.bell,
            "channel": self.channel,
        }

    def fence(self, job: Job) -> int:
        """What its token says, if it is one of this queue."""
        return job.token - self._salt

    # Opening

    def open(self) -> None:
        """The first step would do it; this way a caller learns at once what is wrong."""
        if self.queue:
            return
        with self._opening:
            if not self.queue:
                self.stock.run(self._open)

    def _open(self, connection: Connection, again: bool) -> None:
        if self._make:
            for name in tables.migrate(connection, self.schema):
                log.info("%r: schema %s: applied migration %s", self, self.schema, name)
        elif tables.pending(connection, self.schema):
            raise ConfigError(
                f"{self!r}: the tables of schema {self.schema} are missing or old: run 'headrace migrate'"
            )
        name = self.settings.queue
        row = connection.execute(self.sql["queue_find"], {"name": name}).fetchone()
        if row is None:
            connection.execute(self.sql["queue_add"], {"name": name, "salt": secrets.randbits(61)})
            row = connection.execute(self.sql["queue_find"], {"name": name}).fetchone()
            assert row is not None
        queue, self._salt, oid = row
        self.bell = ((oid & 0x7FFFFFFF) << 32) | queue
        clock = self.settings.clock
        if self._own_clock:
            anchor = {"anchor": clock.wall() - clock.steady()}
            found = connection.execute(self.sql["clock_anchor"], anchor).fetchone()
            assert found is not None
            self._anchor, self._skew = found
        self.queue = queue

    @property
    def _now(self) -> int | None:
        """What statements take for the time; None: the server's clock."""
        return self.settings.clock.steady() + self._anchor if self._own_clock else None

    # Steps

    def _one(self, name: str, **values: object) -> list[tuple[Any, ...]]:
        """One statement, one transaction."""
        query = self.sql[name]

        def step(connection: Connection, again: bool) -> list[tuple[Any, ...]]:
            return connection.execute(query, {**self.given, **values}, binary=True).fetchall()

        return self.stock.run(step)

    def _one_once(self, name: str, **values: object) -> list[tuple[Any, ...]]:
        """The same, for one whose second try would not find what the first has changed. The number of its transaction
        is the second field of each row."""
        query = self.sql[name]

        def work(connection: Connection, again: bool) -> tuple[list[tuple[Any, ...]], int]:
            rows = connection.execute(query, {**self.given, **values}, binary=True).fetchall()
            return rows, rows[0][1]

        return self.stock.run(once(work))

    def _plain_step(self, work: Callable[[Step], T]) -> T:
        def carried_out(connection: Connection, again: bool) -> tuple[tuple[T, Step], int | None]:
            step = Step(connection, self.sql, self.given, self.settings, again)
            result = work(step)
            return (result, step), step.save()

        result, done = self.stock.run(once(carried_out))
        self._seen(done.now, done.skew)
        if done.came:  # only now can others find them
            self._hint.came(FRONT)
            self._ready.came(done.came)
        return result

    def _one_change(self, name: str, **values: object) -> int:
        def step(connection: Connection, again: bool) -> int:
            return connection.execute(self.sql[name], {"queue": self.queue, **values}).rowcount

        return self.stock.run(step)

    # Time

    def _seen(self, now: int, skew: int) -> None:
        """The time there, at this moment here."""
        if not self._own_clock:
            clock = self.settings.clock
            moved = self._server.seen(now, clock.steady(), clock.wall())
            self._anchor = self._server.anchor
            if moved and self.stock.here:
                self._moved = moved
        self._skew = skew

    def _falls_due(self, moment: int | None) -> None:
        """At that moment in queue time something will have to be moved."""
        if moment is not None:
            self._soonest = min(self._soonest, moment - self._anchor)

    def _calendar_step(self) -> int:
        if not self._own_clock:
            return self._moved
        clock = self.settings.clock
        return calendar_step(clock.wall(), clock.steady() + self._anchor, self._skew)

    # Being told, see bell.py

    def rang(self) -> None:
        """Somebody enqueued a job while one slept here."""
        self._ready.came(1)
        self.rooms.consumers.notify()

    def look_again(self) -> None:
        """Something may have come in that nobody told us of."""
        self._look_at = 0
        self.rooms.consumers.rearm(0)

    # The end

    def close(self) -> None:
        """Connections are shared in the process, and go with the last handle on them."""
        if not self._closed:
            self._closed = True
            if self._bell is not None:
                self._bell.remove(self)
            self.stock.leave()

    def before_fork(self) -> None:
        pass

    def after_fork_in_parent(self) -> None:
        pass

    def after_fork_in_child(self) -> None:
        self._opening = threading.Lock()
        self._sweeping = threading.Lock()
        self._ready = Ready()
        self._look_at = 0
        self.rooms.clear()
        if self._bell is not None:
            self._bell.forked()


def is_own(clock: object) -> bool:
    """Not the machine's clock: then the server's does not count either."""
    return clock is not None and not isinstance(clock, SystemClock)
