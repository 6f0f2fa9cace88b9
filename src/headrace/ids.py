"""Time-ordered ids: UUID version 7 (RFC 9562), monotonic within a process.

Sorted by time, they keep an index's inserts at its right edge; random UUIDs cost 20 to 30 % there. The time and a
counter make an id unique within its process, and 62 random bits, drawn once for each process, among all others:
ids have to be unique, not secret, and drawing anew for each would cost more than all the rest.
"""

from __future__ import annotations

import os

from .clock import SystemClock
from .native import Gate, Ticks

_COUNTS = [f"{count:03x}-" for count in range(4096)]
_clock = Ticks(SystemClock())
_lock = Gate()
_last = 0
_millis = -1
_head = ""
_tail = ""


def new_id() -> str:
    """A UUIDv7 as text: 48 bits of Unix milliseconds, a 12-bit counter, 62 bits of the process."""
    _lock.acquire()
    try:
        return _next()
    finally:
        _lock.release()


def _next() -> str:
    global _last, _millis, _head
    # Milliseconds and counter as one number: more than 4,096 in a millisecond borrow from the next.
    stamp = max((_clock.wall() // 1000) << 12, _last + 1)
    _last = stamp
    if stamp >> 12 != _millis:
        _millis = stamp >> 12
        text = f"{_millis:012x}"
        _head = f"{text[:8]}-{text[8:]}-7"
    return _head + _COUNTS[stamp & 0xFFF] + _tail


def _reset() -> None:
    """A child would make its parent's ids, and wait for ever if another thread held the lock when it was forked."""
    global _lock, _tail
    _lock = Gate()
    text = f"{0x2 << 62 | int.from_bytes(os.urandom(8), 'big') >> 2:016x}"
    _tail = f"{text[:4]}-{text[4:]}"


_reset()
os.register_at_fork(after_in_child=_reset)
