"""Being woken: one thread and one connection for each process and schema, which LISTEN for jobs that came in.

A NOTIFY makes commits queue up behind each other, so nobody shall send one while all workers are busy. A worker that
goes to sleep therefore says so, by an advisory lock on the number of its queue, its *bell*. Who enqueues tries to take
the same lock, shared, until its commit: where that succeeds nobody sleeps, and nothing is sent. As each waits for the
other, no job falls between: either the sleeper finds the lock taken, and looks again after the commit, or the one who
enqueues finds it taken, and rings. One sleeper of a queue is enough to have it rung for all; when it wakes for good it
calls the others, and another one takes over.

All this is a courtesy: everybody also looks every ``poll`` seconds. So an outage of the bell costs time and nothing
else; it is told once, and mends itself.
"""

from __future__ import annotations

import logging
import os
import selectors
import threading
import time
from contextlib import suppress
from typing import Protocol
from weakref import WeakSet, WeakValueDictionary

from ..waiting import Rooms
from .connections import Connection, Stock

log = logging.getLogger("headrace.postgres")

LINGER = 0.25
"""Seconds for which a bell stays watched after the last sleeper of a queue woke: it may sleep again at once."""
PROBE = 5.0
"""Seconds between two signs of life from the server."""
SOON = 0.005
"""Seconds after which a lock that was taken is tried again: whoever enqueues holds it for one commit."""
TRIES = 20
"""So many such pauses is the longest one while it stays taken."""
_ONLY_SHARED = b"SELECT CASE WHEN pg_try_advisory_lock_shared(%s) THEN pg_advisory_unlock_shared(%s) ELSE false END"


class Sleeper(Protocol):
    """A queue whose consumers may sleep."""

    queue: int
    bell: int
    rooms: Rooms

    def rang(self) -> None:
        """Something came in."""

    def look_again(self) -> None:
        """Something may have come in unheard."""


class _Watch:
    """What the thread knows of one queue."""

    def __init__(self) -> None:
        self.held = 0
        """The lock that we hold; 0: none."""
        self.since = 0.0
        """When a consumer was last seen asleep."""
        self.tries = 0
        self.next = 0.0
        """When to try for the lock again; 0.0: as soon as somebody sleeps."""


class Bell:
    def __init__(self, stock: Stock, channel: str, dsn: str | None) -> None:
        self.channel = channel
        self._stock = stock
        self._dsn = dsn
        self._lock = threading.Lock()
        self._sleepers: WeakSet[Sleeper] = WeakSet()
        self._thread: threading.Thread | None = None
        self._pipe: tuple[int, int] | None = None
        self._rung: set[str] = set()
        self.works = True
        """False: nothing can be heard, so that one has to look more often."""

    def add(self, sleeper: Sleeper) -> None:
        with self._lock:
            self._sleepers.add(sleeper)

    def remove(self, sleeper: Sleeper) -> None:
        with self._lock:
            self._sleepers.discard(sleeper)

    def call(self) -> None:
        """Somebody goes to sleep. Quick, from any thread."""
        with self._lock:
            if self._thread is None and self.works:
                self._pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
                self._thread = threading.Thread(target=self._run, name="headrace-postgres-bell", daemon=True)
                self._thread.start()
            if self._pipe is not None:
                with suppress(BlockingIOError):  # full: it has been called often enough
                    os.write(self._pipe[1], b"!")

    def forked(self) -> None:
        """In the child: the thread and its connection are the parent's."""
        self._lock = threading.Lock()
        self._thread = self._pipe = None
        self._sleepers = WeakSet(self._sleepers)

    # In the thread

    def _run(self) -> None:
        pause, told = 0.1, False
        while not self._ended():
            try:
                with self._stock.open(self._dsn) as connection:
                    if connection.prepare_threshold is None:
                        self._deaf()
                        continue
                    # What arrives together with the answer to a question is handed over there and then.
                    connection.add_notify_handler(lambda note: self._rung.add(note.payload))
                    connection.execute(f'LISTEN "{self.channel}"'.encode())
                    if told:
                        log.warning("%s: being woken works again", self.channel)
                    pause, told = 0.1, False
                    self._listen(connection)
            except Exception as error:  # whatever it is, a thread that is gone would wake nobody any more
                if not told:
                    log.warning("%s: cannot be woken, looking now and then instead (%s)", self.channel, _line(error))
                told = True
                time.sleep(pause)
                pause = min(2 * pause, 5.0)

    def _ended(self) -> bool:
        """Is there nobody to listen for? Whoever calls from now on starts another thread."""
        with self._lock:
            if self._sleepers and self.works:
                return False
            self._thread = None
            pipe, self._pipe = self._pipe, None
            for end in pipe or ():
                os.close(end)
            return True

    def _deaf(self) -> None:
        self.works = False
        log.warning(
            "%s: behind a pooler that shares sessions LISTEN hears nothing: looking often instead; "
            "say direct='postgresql://…' with the server's own address to be woken at once",
            self.channel,
        )
        for sleeper in self._all():
            sleeper.look_again()

    def _all(self) -> list[Sleeper]:
        with self._lock:
            return list(self._sleepers)

    def _listen(self, connection: Connection) -> None:
        watches: dict[int, _Watch] = {}
        heard = time.monotonic()
        for sleeper in self._all():
            sleeper.look_again()
        assert self._pipe is not None
        called, line = self._pipe[0], connection.fileno()
        with selectors.DefaultSelector() as ends:
            for end in (called, line):
                ends.register(end, selectors.EVENT_READ)
            while self._all():
                now = time.monotonic()
                if now - heard >= PROBE:
                    self._ask(connection, b"SELECT 1")
                    heard = now
                self._hear(connection, watches)
                wait = min(self._mind(connection, watches, now), PROBE)
                ready = {key.fd for key, _ in ends.select(wait)}
                if called in ready:
                    os.read(called, 4096)
                if line in ready:
                    connection.pgconn.consume_input()
                    heard = time.monotonic()

    def _hear(self, connection: Connection, watches: dict[int, _Watch]) -> None:
        while (message := connection.pgconn.notifies()) is not None:
            self._rung.add(message.extra.decode())
        rung, self._rung = self._rung, set()
        for sleeper in self._all() if rung else ():
            if str(sleeper.queue) in rung:
                sleeper.rang()
            if f"later {sleeper.queue}" in rung:
                sleeper.look_again()
            if f"free {sleeper.queue}" in rung and sleeper.queue in watches:
                watches[sleeper.queue].next = 0.0

    def _mind(self, connection: Connection, watches: dict[int, _Watch], now: float) -> float:
        """Take the locks of those who sleep, give back those of the others; seconds until the next time."""
        wait = PROBE
        asleep: dict[int, list[Sleeper]] = {queue: [] for queue in watches}
        for sleeper in self._all():
            if sleeper.queue:
                lying = asleep.setdefault(sleeper.queue, [])
                if sleeper.rooms.consumers.tickets:
                    lying.append(sleeper)
        for queue, sleepers in asleep.items():
            watch = watches.setdefault(queue, _Watch())
            if sleepers:
                watch.since = now
            bell = next((sleeper.bell for sleeper in sleepers), watch.held)
            if watch.held and (now - watch.since >= LINGER or bell != watch.held):
                self._give_back(connection, queue, watch.held)
                watch.held = 0
                wait = 0.0 if sleepers else wait
            elif watch.held:
                wait = min(wait, LINGER)
            elif sleepers and now >= watch.next:
                watch.held = bell if self._ask(connection, b"SELECT pg_try_advisory_lock(%s)", bell) else 0
                if watch.held:
                    watch.tries = 0
                    watch.next = 0.0
                    for sleeper in sleepers:
                        sleeper.look_again()
                elif self._ask(connection, _ONLY_SHARED, bell, bell):
                    # One commit after the other: nobody rings, and the lock may not be free for long.
                    watch.tries = min(watch.tries + 1, TRIES)
                    watch.next = now + SOON * watch.tries
                    for sleeper in sleepers:
                        sleeper.look_again()
                else:  # somebody sleeps elsewhere, and is rung for all
                    watch.tries = 0
                    watch.next = now + 1.0
            if sleepers and not watch.held:
                wait = min(wait, max(0.0, watch.next - now))
        return wait

    def _give_back(self, connection: Connection, queue: int, bell: int) -> None:
        self._ask(connection, b"SELECT pg_advisory_unlock(%s)", bell)
        self._ask(connection, b"SELECT pg_notify(%s, %s)", self.channel, f"free {queue}")

    def _ask(self, connection: Connection, query: bytes, *values: object) -> object:
        with self._stock.limited(connection, PROBE):
            row = connection.execute(query, values).fetchone()
        return None if row is None else row[0]


_bells: WeakValueDictionary[tuple[str, str, str | None], Bell] = WeakValueDictionary()


def bell(stock: Stock, channel: str, dsn: str | None) -> Bell:
    """One for all handles of this process on the same schema."""
    return _bells.setdefault((stock.dsn, channel, dsn), Bell(stock, channel, dsn))


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
