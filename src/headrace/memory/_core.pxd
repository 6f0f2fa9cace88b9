cimport cython

from ..admit cimport admit
from ..job cimport Job
from ..native cimport same
from ..record cimport DEAD, DELAYED, INFLIGHT, READY, Record, snapshot
from ..settings cimport Settings
from ._delayed cimport Block, Delayed
from ._leases cimport Leases
from ._ready cimport Ready
from ._table cimport Table

cdef int FEW, TIDY

@cython.final
cdef class Core:
    cdef public Settings settings
    cdef public str queue
    cdef public Py_ssize_t capacity
    cdef public long long lease, salt, fence, seq, tidy, skew, soonest, moved
    cdef public bint paused, by_calendar
    cdef public Table jobs
    cdef public dict totals
    cdef public Ready ready
    cdef public Delayed delayed
    cdef public Leases leases
    cdef public object dead
    cdef public long long enqueued, acked
    cdef int _enter_delayed(self, Record record, long long due) except -1
    cdef int _enter_ready(self, Record record) except -1
    cdef int _enter_line(self, Record record, long long due, long long now) except -1
    cdef int _leave(self, Record record) except -1
    cdef int _bring(self, Record record) except -1
    cdef _bury(self, Record record, str error, long long died)
    cdef _finish(self, Record record, str total)
    cdef int _free(self, Record record) except -1
    cdef int _tidy(self) except -1
    cdef _retry(self, Record record, long long due, long long now, str error)
    cpdef promote(self, long long now)
    @cython.locals(block=Block, record=Record)
    cdef _promote(self, long long now)
    @cython.locals(record=Record)
    cdef int _move(self, Block block) except -1
    @cython.locals(record=Record)
    cpdef step(self, long long change, long long now)
    @cython.locals(record=Record, over=Py_ssize_t, kept=Py_ssize_t)
    cpdef put(self, records, policy, long long now)
    cpdef bint put_one(self, Record record, long long now) except -1
    @cython.locals(record=Record, added=Record, done=Py_ssize_t)
    cpdef bint put_many(self, list records, long long now) except -1
    cdef int _add(self, Record record, long long now) except -1
    @cython.locals(record=Record)
    cdef _drop_oldest(self, Py_ssize_t count)
    @cython.locals(taken=list)
    cpdef list take(self, Py_ssize_t limit, long long now)
    cpdef take_one(self, long long now)
    @cython.locals(record=Record)
    cdef _next(self, long long now)
    cdef _miss(self, Record record, long long now)
    @cython.locals(record=Record)
    cdef Record _held(self, Job job, long long now, int too_late=*)
    @cython.locals(record=Record)
    cdef Record _holder(self, Job job)
    @cython.locals(record=Record)
    cdef Record _give_up(self, Job job, long long now)
    @cython.locals(record=Record)
    cpdef bint ack(self, Job job, long long now) except -1
    @cython.locals(record=Record)
    cpdef bint ack_one(self, Job job, long long now) except -1
    cpdef list ack_all(self, jobs, long long now)
    @cython.locals(record=Record)
    cpdef bint nack(self, Job job, long long delay, str error, long long now) except -1
    @cython.locals(record=Record)
    cpdef bint release(self, Job job, long long delay, long long now) except -1
    @cython.locals(record=Record)
    cpdef bint bury(self, Job job, str error, long long now) except -1
    @cython.locals(record=Record)
    cpdef bint abandon(self, Job job, long long now) except -1
    @cython.locals(record=Record)
    cpdef bint forward(self, Job job, long long now, Core to, long long then) except -1
    @cython.locals(record=Record)
    cpdef extend(self, Job job, long long duration, int too_late, long long now)
    @cython.locals(record=Record)
    cpdef bint cancel(self, str id, long long now) except -1
    @cython.locals(record=Record)
    cpdef find(self, str id, long long now)
    @cython.locals(record=Record)
    cpdef list look_dead(self, Py_ssize_t limit, long long after, long long now)
    @cython.locals(record=Record)
    cpdef replay(self, limit, ids, long long now)
    @cython.locals(record=Record)
    cpdef drop_delayed(self)
    @cython.locals(oldest=Record)
    cpdef stats(self, long long now)
