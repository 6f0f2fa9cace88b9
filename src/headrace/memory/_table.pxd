from cpython.object cimport PyObject

from ..record cimport Record

cdef struct Slot:
    Py_hash_t hash
    PyObject *record

cdef class Table:
    cdef Slot *_slots
    cdef Py_ssize_t _mask, _count, _found
    cdef Py_ssize_t _place(self, str id, Py_hash_t hash) except -1
    cdef int _resize(self, Py_ssize_t size) except -1
    cpdef Record find(self, id)
    cpdef bint enter(self, Record record) except -1
    cpdef int leave(self, Record record) except -1
    cpdef clear(self)
    cdef int expect(self, id) except -1
    cdef int look_ahead(self, list line, Py_ssize_t first) except -1
