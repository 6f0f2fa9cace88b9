"""Waiting rooms: how callers sleep until there is something for them, and how few of them are woken.

Three rules carry this module.

**Chain wake.** However many wait and however much arrives, one woken ticket is under way at a time. It wakes the
next when it leaves and there is more. Waking one caller per job would wake crowds that find nothing, and a
broadcast all of them; this way 512 waiters cost what 8 do. A ticket that was woken and leaves without taking
anything (its caller was cancelled, or timed out in that very moment) passes the wake on, so none is lost.

**No lost wake-up.** A caller first enters the room, then looks once more, then sleeps. Whoever makes something
ready after that look finds the ticket. A wake that meets a ticket under way marks it, and a marked ticket looks
again before it sleeps.

**One owner of the clock.** Jobs also become ready because time passes. One ticket in the room, the owner, sleeps
no longer than the next due moment (and no longer than the store's ``poll``, where other processes write too);
then it moves what is due and wakes the head of the line. When it leaves, it hands the watch to the last in line,
who will stay the longest. Everybody else sleeps undisturbed.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from .clock import FAR, Clock


class Ticket:
    """One caller's place in the line. ``signalled``: look again before you sleep."""

    __slots__ = ("signalled",)

    def __init__(self) -> None:
        self.signalled = False

    def wake(self) -> bool:
        """End the sleep, or the next one if it sleeps not yet. False: nobody is there any more."""
        raise NotImplementedError

    async def sleep(self, clock: Clock, until: int) -> None:
        """Until woken, or until ``clock.steady()`` reaches ``until``."""
        raise NotImplementedError


class ThreadTicket(Ticket):
    """A thread sleeps on a lock that is always taken; releasing it is the wake."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._lock.acquire()

    def wake(self) -> bool:
        try:
            self._lock.release()
        except RuntimeError:  # woken already
            pass
        return True

    async def sleep(self, clock: Clock, until: int) -> None:
        clock.acquire(self._lock, until)


class TaskTicket(Ticket):
    """A task sleeps on a future of its loop; anybody in any thread may wake it."""

    __slots__ = ("_awake", "_future", "_loop", "_thread")

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._future: asyncio.Future[None] | None = None
        self._awake = False

    def wake(self) -> bool:
        if threading.get_ident() == self._thread:
            self._wake()
            return not self._loop.is_closed()
        try:
            self._loop.call_soon_threadsafe(self._wake)
        except RuntimeError:  # the loop is closed
            return False
        return True

    def _wake(self) -> None:
        self._awake = True
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def sleep(self, clock: Clock, until: int) -> None:
        if not self._awake:
            self._future = self._loop.create_future()
            timer = None if until >= FAR else clock.call_at(self._loop, until, self._wake)
            try:
                await self._future
            finally:
                self._future = None
                if timer is not None:
                    timer.cancel()
        self._awake = False


class Source(Protocol):
    """What the owner of the clock watches."""

    @property
    def soonest(self) -> int:
        """By ``steady()``: when to look next, at the latest."""

    def changed(self) -> bool:
        """Might something be due, or written by somebody else? Quick, and never blocks."""


class Room:
    """A line of tickets, first come first served. ``occupied``: the rooms, this one and others, that are not empty."""

    def __init__(self, occupied: set[Room] | None = None) -> None:
        self._lock = threading.Lock()
        self._occupied = set() if occupied is None else occupied
        self.tickets: OrderedDict[Ticket, None] = OrderedDict()
        self._under_way: Ticket | None = None
        self._owner: Ticket | None = None
        self._armed = FAR

    def enter(self, ticket: Ticket) -> None:
        with self._lock:
            self.tickets[ticket] = None
            self._occupied.add(self)
            if self._owner is None:
                self._owner = ticket

    def leave(self, ticket: Ticket, more: bool) -> None:
        """``more``: there is, or may be, something for the next in line."""
        with self._lock:
            self.tickets.pop(ticket, None)
            if self._under_way is ticket:
                self._under_way = None
                if more or ticket.signalled:
                    self._wake_head()
            self._hand_on(ticket)
            if not self.tickets:
                self._occupied.discard(self)

    def notify(self) -> None:
        """There is something: wake the head of the line, unless somebody is under way already."""
        under_way = self._under_way
        if under_way is not None and under_way.signalled:
            return  # it looks again before it sleeps, and if it leaves it passes the wake on
        if self.tickets:
            with self._lock:
                if self._under_way is None:
                    self._wake_head()
                else:
                    self._under_way.signalled = True

    def rearm(self, due: int) -> None:
        """Something falls due at ``due`` (steady): does the owner of the clock sleep longer than that?"""
        if due < self._armed and (owner := self._owner) is not None:
            owner.wake()

    def wake_all(self) -> None:
        """For the end of everything: everybody looks again."""
        with self._lock:
            for ticket in self.tickets:
                ticket.signalled = True
                ticket.wake()

    def _wake_head(self) -> None:
        while self.tickets:
            head = next(iter(self.tickets))
            head.signalled = True
            if head.wake():
                self._under_way = head
                return
            del self.tickets[head]  # its event loop is gone, and took the caller along
            self._hand_on(head)

    def _hand_on(self, gone: Ticket) -> None:
        """The watch over the clock goes to the last in line, who has to see for how long it may sleep."""
        if self._owner is gone:
            self._owner = next(reversed(self.tickets), None)
            self._armed = FAR
            if self._owner is not None:
                self._owner.wake()

    def _rest(self, ticket: Ticket) -> bool:
        """Before a sleep: False when there is reason to look again first."""
        with self._lock:
            if ticket.signalled:
                ticket.signalled = False
                return False
            if self._under_way is ticket:
                self._under_way = None
            return True

    async def wait(
        self,
        ticket: Ticket,
        clock: Clock,
        deadline: int,
        source: Source,
        tick: Callable[[], object],
    ) -> None:
        """Sleep until it is worth looking again, or ``deadline`` (steady) has come.

        ``tick()`` moves what is due, and notifies; it is awaited when it returns an awaitable.
        """
        while self._rest(ticket):
            if clock.steady() >= deadline:
                return
            until = deadline
            if self._owner is ticket:
                self._armed = FAR  # from here on any new due moment wakes us
                if source.changed():
                    moved = tick()
                    if asyncio.iscoroutine(moved):
                        await moved
                    continue
                self._armed = until = min(until, source.soonest)
            await ticket.sleep(clock, until)


class Rooms:
    """Where the consumers of a queue wait for jobs, and its producers for room."""

    def __init__(self) -> None:
        self.waiting: set[Room] = set()
        """The rooms in which somebody is: while it is empty, nobody has to be told anything."""
        self.clear()

    def clear(self) -> None:
        """Begin anew in a forked child: whoever waited here waits in the parent."""
        self.waiting.clear()
        self.consumers = Room(self.waiting)
        self.producers = Room(self.waiting)
