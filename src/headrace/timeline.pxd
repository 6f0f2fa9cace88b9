cimport cython
from libc.stdint cimport int64_t  # where -1 may be an error: Cython writes no such long long

from .native cimport Ticks

cdef long long TOLERANCE

@cython.final
cdef class Timeline:
    cdef Ticks _ticks
    cdef public long long anchor, skew
    cdef long long _look_again
    cpdef int64_t now(self) except? -1
    cpdef int64_t roughly(self) except? -1
    @cython.locals(change=cython.longlong)
    cpdef int64_t stepped(self, long long now) except? -1

@cython.locals(change=cython.longlong)
cpdef int64_t step(long long wall, long long now, long long skew) except? -1
