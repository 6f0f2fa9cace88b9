cimport cython

from .layout cimport lay, moment

cdef tuple STATES
cdef object ZERO
cdef int DELAYED, READY, INFLIGHT, DEAD


@cython.freelist(64)
cdef class Record:
    cdef public signed char place, absolute, cancelled
    cdef public int priority, max_attempts, attempt
    cdef public str id, last_error
    cdef public bytes payload
    cdef Py_hash_t mark  # by which the table of ids knows it
    cdef public long long enqueued, due, run_at, latest, fence, seq, ref, slot

cdef Record fresh(
    str id, bytes payload, int priority, int max_attempts, long long enqueued, long long due, bint absolute, long long latest
)
cdef int _fill(
    Record record, str id, bytes payload, int priority, int max_attempts, long long enqueued, long long due,
    bint absolute, long long latest
) except -1
cpdef snapshot(Record record, str queue, long long salt, long long skew)
@cython.locals(inflight=cython.bint, dead=cython.bint, jobs=list, enqueued=cython.longlong, run_at=cython.longlong, fence=cython.longlong, due=cython.longlong)
cpdef list jobs_of(rows, state, str queue, long long salt, long long skew)

@cython.locals(
    record=Record, ids=list, payloads=list, priorities=list, attempts=list, absolutes=list, dues=list, latests=list,
    enqueueds=list,
)
cpdef tuple columns_of(records)
