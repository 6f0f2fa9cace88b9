cimport cython
from libc.stdint cimport int64_t  # where -1 may be an error: Cython writes no such long long

from ..admit cimport admit
from ..job cimport Job
from ..native cimport Gate
from ..settings cimport Settings
from ..timeline cimport Timeline
from ._core cimport Core



@cython.final
cdef class MemoryStore:
    cdef object __weakref__
    cdef readonly Settings settings
    cdef readonly object rooms
    cdef readonly Gate _lock
    cdef readonly bint closed
    cdef bint _forked
    cdef readonly Timeline _time
    cdef readonly Core _core
    @cython.locals(now=cython.longlong, change=cython.longlong)
    cdef int64_t _now(self) except? -1
    @cython.locals(about=cython.longlong)
    cdef int64_t _about(self) except? -1
    cdef bint put_one(self, job) except -1
    @cython.locals(now=cython.longlong, given=Job)
    cdef bint _put_one(self, job) except -1
    cdef bint put_many(self, jobs) except -1
    @cython.locals(now=cython.longlong)
    cdef bint _put_many(self, jobs) except -1
    @cython.locals(there=MemoryStore)
    cpdef bint forward(self, job, to) except -1
    cpdef list take(self, Py_ssize_t limit)
    cdef take_one(self)
    cpdef list ack(self, jobs)
    cdef bint ack_one(self, job) except -1
