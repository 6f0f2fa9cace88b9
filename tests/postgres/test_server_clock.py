"""Who notices that the server's clock was moved, and what they conclude."""

from __future__ import annotations

import pytest

from headrace.clock import SECOND
from headrace.postgres.server_clock import ServerClock, is_here

HOUR = 3600 * SECOND


@pytest.mark.parametrize(
    ("server", "wall", "moved"),
    [
        (0, 0, 0),
        (SECOND // 2, 0, 0),
        (HOUR, HOUR, HOUR),
        (-HOUR, -HOUR, -HOUR),
        (HOUR, HOUR + SECOND // 2, HOUR),
        (HOUR, 0, 0),
        (-HOUR, 0, 0),
        (0, HOUR, 0),
        (HOUR, -HOUR, 0),
    ],
    ids=[
        "nothing",
        "an answer that took a while",
        "this machine's clock went forward",
        "and back",
        "and was slewed besides",
        "this process was stopped, or the server is elsewhere",
        "the server is elsewhere",
        "somebody has corrected it already",
        "two that have nothing to do with each other",
    ],
)
def test_the_servers_clock_was_moved_when_this_machines_was_by_as_much(server: int, wall: int, moved: int) -> None:
    clock = ServerClock()
    assert clock.seen(10 * HOUR, 2 * HOUR, 30 * HOUR) == 0
    assert clock.seen(11 * HOUR + server, 3 * HOUR, 31 * HOUR + wall) == moved
    assert clock.anchor == 8 * HOUR + server
    assert clock.seen(12 * HOUR + server, 4 * HOUR, 32 * HOUR + wall) == 0


def test_the_first_answer_tells_nothing() -> None:
    assert ServerClock().seen(10 * HOUR, 0, 10 * HOUR) == 0


@pytest.mark.parametrize(
    ("host", "here"),
    [("", True), ("/run/postgresql", True), ("localhost", True), ("127.0.0.1", True), ("::1", True),
     ("db.example", False), ("10.0.0.7", False), ("localhost,db.example", False)],
)  # fmt: skip
def test_a_server_is_here_when_its_address_says_so(host: str, here: bool) -> None:
    assert is_here(host) is here
