# How a Job lies in memory: a pointer for each field, in the order of their names. ``layout.py`` proves it at import.
from cpython.object cimport PyObject

cdef extern from *:
    """
    typedef struct {
        PyObject_HEAD
        PyObject *attempt, *cancelled, *deadline, *delay, *died_at, *enqueued_at, *fence, *id, *last_error, *lease_until,
            *max_attempts, *payload, *priority, *queue, *ref, *run_at, *state, *token;
    } HeadraceJob;
    """
    ctypedef struct HeadraceJob

cdef extern class headrace.job.Job [object HeadraceJob, check_size ignore]:
    cdef object attempt, cancelled, deadline, delay, died_at, enqueued_at, fence, id, last_error, lease_until
    cdef object max_attempts, payload, priority, queue, ref, run_at, state, token
