from .native cimport Gate, Ticks

cdef Ticks _clock
cdef Gate _lock
cdef list _COUNTS
cdef long long _last, _millis
cdef str _head, _tail

cpdef str new_id()
cdef str _next()
