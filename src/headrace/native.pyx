# cython: cdivision=True
"""The compiled twin of ``native.py``: the machine's clocks are read in C, any other one as it wants to be."""

from libc.string cimport memchr
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.pythread cimport (
    NOWAIT_LOCK,
    WAIT_LOCK,
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_free_lock,
    PyThread_release_lock,
)
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec
from posix.types cimport clockid_t
from posix.unistd cimport usleep

from headrace.clock import SystemClock


cdef extern from *:
    """
    #ifdef CLOCK_REALTIME_COARSE
    #define HEADRACE_WALL CLOCK_REALTIME_COARSE
    #define HEADRACE_ROUGHLY CLOCK_MONOTONIC_COARSE
    #else
    #define HEADRACE_WALL CLOCK_REALTIME
    #define HEADRACE_ROUGHLY CLOCK_MONOTONIC
    #endif
    #ifdef Py_GIL_DISABLED
    #define HEADRACE_GIL 0
    #else
    #define HEADRACE_GIL 1
    #endif
    """
    bint HEADRACE_GIL
    clockid_t HEADRACE_WALL
    clockid_t HEADRACE_ROUGHLY
    bint PyUnicode_IS_ASCII(object)
    void *PyUnicode_DATA(object)
    Py_ssize_t PyUnicode_GET_LENGTH(object)


cdef inline long long read(clockid_t clock) noexcept:
    cdef timespec now
    clock_gettime(clock, &now)
    return now.tv_sec * 1_000_000LL + now.tv_nsec // 1000


cdef class Gate:
    """A lock. Where there is a GIL, no other thread runs between a look at a flag and the setting of it, and that is all
    it takes: the steps behind it run next to no bytecode, so hardly ever does one find it set, and has to wait."""

    def __cinit__(self):
        self._lock = PyThread_allocate_lock()
        if self._lock == NULL:
            raise MemoryError

    def __dealloc__(self):
        if self._lock != NULL:
            PyThread_acquire_lock(self._lock, NOWAIT_LOCK)  # a forked child may find it taken
            PyThread_release_lock(self._lock)
            PyThread_free_lock(self._lock)

    cpdef bint acquire(self) except -1:
        if HEADRACE_GIL:
            while self._taken:
                with nogil:
                    usleep(20)
            self._taken = True
        elif not PyThread_acquire_lock(self._lock, NOWAIT_LOCK):
            with nogil:
                PyThread_acquire_lock(self._lock, WAIT_LOCK)
        return True

    cpdef bint release(self) except -1:
        if HEADRACE_GIL:
            self._taken = False
        else:
            PyThread_release_lock(self._lock)
        return True

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *_):
        self.release()


cdef class Ticks:
    def __init__(self, clock):
        self._clock = clock
        self._machine = type(clock) is SystemClock

    cpdef long long steady(self) except? -1:
        return read(CLOCK_MONOTONIC) if self._machine else self._clock.steady()

    cpdef long long wall(self) except? -1:
        """To within some milliseconds, which is all that telling a step of the calendar takes, for a third of the
        cost."""
        return read(HEADRACE_WALL) if self._machine else self._clock.wall()

    cpdef long long roughly(self) except? -1:
        return read(HEADRACE_ROUGHLY) if self._machine else self._clock.steady()


cdef bint whole(given, long long least, long long most) except -1:
    cdef int overflow = 0
    if type(given) is not int:
        return False
    return least <= PyLong_AsLongLongAndOverflow(given, &overflow) <= most and not overflow


cdef bint same(long long number, given) except -1:
    cdef int overflow = 0
    if type(given) is not int:
        return number == given
    return PyLong_AsLongLongAndOverflow(given, &overflow) == number and not overflow


cpdef bint storable(str name) except -1:
    if PyUnicode_IS_ASCII(name):
        return memchr(PyUnicode_DATA(name), 0, PyUnicode_GET_LENGTH(name)) == NULL
    try:
        return b"\0" not in name.encode()
    except UnicodeEncodeError:
        return False
