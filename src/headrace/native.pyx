"""The compiled twin of ``native.py``: the machine's clocks are read in C, any other one as it wants to be. What is not
here stands in ``native.pxd``."""

import cython

from headrace.clock import SystemClock


class Gate:
    """A lock. Where there is a GIL, no other thread runs between a look at a flag and the setting of it, and that is all
    it takes: the steps behind it run next to no bytecode, so hardly ever does one find it set, and has to wait."""

    def __cinit__(self):
        self._lock = PyThread_allocate_lock()
        if self._lock == cython.NULL:
            raise MemoryError

    def __dealloc__(self):
        if self._lock != cython.NULL:
            PyThread_acquire_lock(self._lock, NOWAIT_LOCK)  # a forked child may find it taken
            PyThread_release_lock(self._lock)
            PyThread_free_lock(self._lock)

    def acquire(self):
        if HEADRACE_GIL:
            while self._taken:
                with cython.nogil:
                    usleep(20)
            self._taken = True
        elif not PyThread_acquire_lock(self._lock, NOWAIT_LOCK):
            with cython.nogil:
                PyThread_acquire_lock(self._lock, WAIT_LOCK)
        return True

    def release(self):
        if HEADRACE_GIL:
            self._taken = False
        else:
            PyThread_release_lock(self._lock)
        return True

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *_):
        self.release()


class Ticks:
    def __init__(self, clock):
        self._clock = clock
        self._machine = type(clock) is SystemClock
        self.fresh = 1000 if self._machine else 0

    def steady(self):
        return read(CLOCK_MONOTONIC) if self._machine else self._clock.steady()

    def wall(self):
        """To within some milliseconds, which is all that telling a step of the calendar takes, for a third of the
        cost."""
        return read(HEADRACE_WALL) if self._machine else self._clock.wall()

    def roughly(self):
        return read(HEADRACE_ROUGHLY) if self._machine else self._clock.steady()


def own(kind, method):
    return headrace_own(kind, method)


def storable(name):
    if PyUnicode_IS_ASCII(name):
        return ascii_storable(name)
    try:
        return b"\0" not in name.encode()
    except UnicodeEncodeError:
        return False
