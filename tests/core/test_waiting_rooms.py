"""The waiting room, by itself: who is woken, and who is not."""

from __future__ import annotations

import asyncio

import pytest

from headrace.clock import FAR
from headrace.ports import ThreadPort, run
from headrace.testing import VirtualClock
from headrace.waiting import Room, Rooms, TaskTicket, ThreadTicket, Ticket


class Watched(Ticket):
    """A ticket that counts how often it was woken; ``there``: somebody still holds it."""

    __slots__ = ("there", "woken")

    def __init__(self) -> None:
        super().__init__()
        self.woken = 0
        self.there = True

    def wake(self) -> bool:
        self.woken += 1
        return self.there


class Nothing:
    """A source in which nothing ever falls due."""

    soonest = FAR

    def changed(self) -> bool:
        return False


def line(count: int) -> tuple[Room, list[Watched]]:
    room, tickets = Room(), [Watched() for _ in range(count)]
    for ticket in tickets:
        room.enter(ticket)
    return room, tickets


def test_one_woken_ticket_is_under_way_at_a_time_however_much_comes() -> None:
    room, tickets = line(3)
    for _ in range(10):
        room.notify()
    assert [ticket.woken for ticket in tickets] == [1, 0, 0]


def test_who_leaves_with_more_behind_it_wakes_the_next() -> None:
    room, (first, second, third) = line(3)
    room.notify()
    first.signalled = False
    room.leave(first, more=True)
    assert second.woken == 1
    assert third.woken == 1  # not as the next, but as the new owner of the clock


def test_who_leaves_with_nothing_behind_it_wakes_nobody_but_the_new_watch() -> None:
    room, (first, second, third) = line(3)
    room.notify()
    first.signalled = False
    room.leave(first, more=False)
    assert (second.woken, third.woken) == (0, 1)


def test_a_wake_that_meets_a_ticket_under_way_is_passed_on_when_it_leaves() -> None:
    room, (first, second) = line(2)
    room.notify()
    first.signalled = False
    room.notify()
    room.leave(first, more=False)
    assert second.signalled


def test_who_was_never_woken_leaves_quietly() -> None:
    room, (_, second, third) = line(3)
    room.leave(second, more=True)
    assert third.woken == 0
    room.leave(second, more=True)


def test_an_empty_room_takes_every_call() -> None:
    room, (only,) = line(1)
    room.leave(only, more=True)
    room.notify()
    room.rearm(0)
    room.wake_all()


def test_only_an_earlier_moment_wakes_the_owner_of_the_clock() -> None:
    room, (owner, other) = line(2)
    room.rearm(5)
    assert (owner.woken, other.woken) == (1, 0)
    room.rearm(FAR)
    assert owner.woken == 1


def test_those_whose_loop_is_gone_are_passed_over_and_another_watches_the_clock() -> None:
    room, (gone, second, third) = line(3)
    gone.there = False
    room.notify()
    assert list(room.tickets) == [second, third]
    assert second.signalled
    assert third.woken > 0, "it is the owner of the clock now, and must be told"


def test_when_all_are_gone_the_room_is_empty() -> None:
    room, (gone,) = line(1)
    gone.there = False
    room.notify()
    assert not room.tickets


def test_the_end_wakes_all() -> None:
    room, tickets = line(4)
    room.wake_all()
    assert all(ticket.signalled and ticket.woken for ticket in tickets)


def test_a_wait_is_over_when_its_time_has_come() -> None:
    clock, room, ticket = VirtualClock(), Room(), ThreadTicket()
    room.enter(ticket)
    run(room.wait(ticket, clock, clock.steady(), Nothing(), lambda: None))
    assert ticket in room.tickets


def test_the_owner_moves_what_is_due_before_it_sleeps() -> None:
    clock, room, ticket = VirtualClock(), Room(), ThreadTicket()
    room.enter(ticket)
    ticks: list[int] = []

    class Due(Nothing):
        def changed(self) -> bool:
            return not ticks

    def tick() -> None:
        ticks.append(1)
        room.notify()

    run(room.wait(ticket, clock, FAR, Due(), tick))
    assert ticks == [1]


def test_a_forked_child_begins_with_empty_rooms() -> None:
    rooms = Rooms()
    rooms.consumers.enter(Watched())
    rooms.clear()
    assert not rooms.consumers.tickets
    assert not rooms.producers.tickets


def test_the_base_of_tickets_does_nothing_by_itself() -> None:
    with pytest.raises(NotImplementedError):
        Ticket().wake()
    with pytest.raises(NotImplementedError):
        run(Ticket().sleep(VirtualClock(), 0))


def test_a_thread_woken_twice_wakes_once() -> None:
    clock, ticket = VirtualClock(), ThreadTicket()
    assert ticket.wake()
    assert ticket.wake()
    run(ticket.sleep(clock, FAR))
    run(ticket.sleep(clock, clock.steady()))


async def test_a_task_woken_before_it_sleeps_does_not_sleep() -> None:
    clock, ticket = VirtualClock(), TaskTicket()
    assert ticket.wake()
    async with asyncio.timeout(5):
        await ticket.sleep(clock, FAR)
    sleeping = asyncio.create_task(ticket.sleep(clock, FAR))
    await asyncio.sleep(0)
    assert not sleeping.done()
    ticket.wake()
    ticket.wake()
    async with asyncio.timeout(5):
        await sleeping


async def test_a_task_is_woken_from_another_thread() -> None:
    clock, ticket = VirtualClock(), TaskTicket()
    sleeping = asyncio.create_task(ticket.sleep(clock, FAR))
    await asyncio.sleep(0)
    assert await asyncio.to_thread(ticket.wake)
    async with asyncio.timeout(5):
        await sleeping


def test_a_task_whose_loop_is_closed_cannot_be_woken() -> None:
    async def make() -> TaskTicket:
        return TaskTicket()

    ticket = asyncio.run(make())
    assert ticket.wake() is False
    elsewhere: list[bool] = []

    async def from_another_thread() -> None:
        elsewhere.append(await asyncio.to_thread(ticket.wake))

    asyncio.run(from_another_thread())
    assert elsewhere == [False]


def test_a_blocking_call_that_suspends_is_an_error_not_a_hang() -> None:
    async def suspends() -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="ThreadPort"):
        run(suspends())


def test_the_port_of_threads_carries_out_each_step_at_once() -> None:
    port = ThreadPort()
    assert isinstance(port.ticket(), ThreadTicket)
    assert run(port.call(max, 1, 2)) == 2
    assert run(port.take(lambda limit: [limit], 3, lambda taken: None)) == [3]
