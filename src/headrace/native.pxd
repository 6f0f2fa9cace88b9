cimport cython
from cpython.pythread cimport PyThread_type_lock

@cython.final
cdef class Ticks:
    cdef object _clock
    cdef bint _machine
    cpdef long long steady(self) except? -1
    cpdef long long wall(self) except? -1
    cpdef long long roughly(self) except? -1

@cython.final
cdef class Gate:
    cdef PyThread_type_lock _lock
    cdef bint _taken
    cpdef bint acquire(self) except -1
    cpdef bint release(self) except -1

cdef bint same(long long number, given) except -1
cdef bint whole(given, long long least, long long most) except -1

cpdef bint storable(str name) except -1
