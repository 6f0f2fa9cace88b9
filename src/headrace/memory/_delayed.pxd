cimport cython
from libc.stdint cimport int64_t  # where -1 may be an error: Cython writes no such long long

from ..record cimport Record

cdef int SIZE

cdef class Block:
    cdef public list records
    cdef public Record best, oldest
    cdef public bint sorted
    cdef public tuple low, high
    cdef int add(self, Py_ssize_t index, Record record) except -1
    @cython.locals(record=Record)
    cdef int take(self, Py_ssize_t index) except -1
    cdef int pop(self) except -1
    @cython.locals(best=Record, record=Record)
    cdef Record first(self)
    @cython.locals(oldest=Record, record=Record)
    cdef Record eldest(self)

cdef Block half(list records)
cdef bint goes_first(Record one, Record other) except -1
cdef bint is_older(Record one, Record other) except -1
cdef bint is_due_later(Record one, Record other) except -1

@cython.final
cdef class Delayed:
    cdef public list blocks
    cdef public Py_ssize_t count
    @cython.locals(number=Py_ssize_t, block=Block)
    cpdef void add(self, Record record)
    @cython.locals(number=Py_ssize_t, block=Block)
    cpdef int remove(self, Record record) except -1
    @cython.locals(block=Block, record=Record)
    cdef int64_t soonest(self) except? -1
    cpdef list all(self)
    @cython.locals(block=Block, record=Record, oldest=Record)
    cpdef Record oldest(self)
    @cython.locals(block=Block, record=Record, low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t)
    cdef Block due_block(self, long long now)
    @cython.locals(block=Block, low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t)
    cdef Py_ssize_t _block(self, Record record) except? -1
    @cython.locals(low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t)
    cdef Py_ssize_t _index(self, Block block, Record record) except? -1
