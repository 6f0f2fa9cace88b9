cimport cython

from .job cimport Job
from .native cimport storable, whole
from .record cimport Record, fresh
from .settings cimport Settings


cdef int LONGEST_ID

@cython.locals(given=Job, name=str, payload=bytes, most=cython.longlong, due=cython.longlong, enqueued=cython.longlong, latest=cython.longlong, absolute=cython.bint)
cpdef Record admit(job, Settings settings, long long now, long long skew)
