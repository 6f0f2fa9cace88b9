cimport cython
from libc.stdint cimport int64_t  # where -1 may be an error: Cython writes no such long long

from ..record cimport DEAD, INFLIGHT, Record
from ._fifo cimport Fifo
from ._heaps cimport LazyHeap
from ._table cimport Table


@cython.final
cdef class Leases:
    cdef Table jobs
    cdef public Py_ssize_t count
    cdef public Fifo line
    cdef public long long last
    cdef public LazyHeap others
    cdef int add(self, Record record) except -1
    cdef int remove(self, Record record) except -1
    @cython.locals(first=Record, soonest=cython.longlong)
    cdef int64_t soonest(self) except? -1
    @cython.locals(record=Record)
    cdef list over(self, long long now)
