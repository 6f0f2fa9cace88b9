cimport cython

from ..record cimport DEAD, READY, Record
from ._delayed cimport Block, goes_first, is_older
from ._fifo cimport Fifo
from ._heaps cimport LazyHeap
from ._table cimport Table

cdef int LINES, NEAR, DEEP

cdef class Bucket(Fifo):
    cdef public int priority, rank
    cdef public long long seq, enqueued

@cython.final
cdef class Ready:
    cdef Table jobs
    cdef public Py_ssize_t count
    cdef public list buckets, late, near
    cdef public dict by_priority
    cdef public int top
    cdef public LazyHeap waiting, ages
    @cython.locals(bucket=Bucket)
    cdef int push(self, Record record) except -1
    @cython.locals(bucket=Bucket)
    cdef Bucket _bucket(self, int priority)
    @cython.locals(bucket=Bucket, each=Bucket)
    cdef Bucket _new_bucket(self, int priority)
    @cython.locals(best=Record)
    cdef int push_block(self, Block block) except -1
    @cython.locals(bucket=Bucket, best=Record)
    cdef Record pop(self)
    @cython.locals(record=Record, block=Block)
    cdef Record _better(self, Record best)
    @cython.locals(record=Record, best=Record, block=Block)
    cdef Record _pop_late(self)
    @cython.locals(bucket=Bucket)
    cdef int remove(self, Record record) except -1
    @cython.locals(best=Record, block=Block)
    cdef int bring(self, Record record) except -1
    @cython.locals(bucket=Bucket, oldest=Record, record=Record, block=Block)
    cpdef Record oldest(self)
