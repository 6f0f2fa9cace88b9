cimport cython

from ..record cimport Record

cdef int HOLES

cdef class Fifo:
    cdef public list items
    cdef public Py_ssize_t first, living
    cdef public long long base
    @cython.final
    cdef int append(self, Record record) except -1
    @cython.final
    cdef Record head(self)
    @cython.locals(record=Record, first=Py_ssize_t)
    @cython.final
    cdef Record pop(self)
    @cython.locals(index=Py_ssize_t)
    @cython.final
    cdef int remove(self, Record record) except -1
    @cython.locals(first=Py_ssize_t, size=Py_ssize_t)
    @cython.final
    cdef int _step(self) except -1
    @cython.locals(index=Py_ssize_t, record=Record)
    @cython.final
    cdef int _close(self) except -1
