cimport cython

from ..record cimport Record

cdef int FEW

cdef class Fifo:
    cdef public list items
    cdef public Py_ssize_t first, living
    cdef public long long base
    cdef int append(self, Record record) except -1
    cpdef Record head(self)
    @cython.locals(record=Record, first=Py_ssize_t)
    cdef Record pop(self)
    @cython.locals(index=Py_ssize_t)
    cdef int remove(self, Record record) except -1
    @cython.locals(first=Py_ssize_t, size=Py_ssize_t)
    cdef int _step(self) except -1
    @cython.locals(index=Py_ssize_t, record=Record)
    cdef int _close(self) except -1
