cimport cython

from ..job cimport Job
from ..native cimport whole
from .store cimport MemoryStore

cdef long long LONGEST

cdef class Direct:
    cdef MemoryStore _store
    cdef object _long, _tell
    cdef set _waiting
    @cython.final
    cdef bint _put(self, job) except -1
    @cython.final
    cdef bint _put_many(self, jobs) except -1
    @cython.final
    cdef _take(self, timeout)
    @cython.final
    cdef _take_many(self, limit, timeout)
    @cython.final
    cdef bint _ack(self, job) except -1
    @cython.final
    cdef bint _ack_many(self, jobs) except -1

cdef bint plain(timeout) except -1
