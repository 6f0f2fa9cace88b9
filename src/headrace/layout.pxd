# A job is made as it lies in memory (``job.pxd``).
from cpython.object cimport PyTypeObject

cdef extern from *:
    """
    #define HEADRACE_SET(field) Py_INCREF(field); job->field = field;
    static inline PyObject *headrace_lay(
        PyTypeObject *type, PyObject *payload, PyObject *id, PyObject *priority, PyObject *delay, PyObject *run_at,
        PyObject *deadline, PyObject *max_attempts, PyObject *queue, PyObject *state, PyObject *attempt, PyObject *fence,
        PyObject *token, PyObject *enqueued_at, PyObject *lease_until, PyObject *died_at, PyObject *last_error,
        PyObject *cancelled, PyObject *ref
    ) {
        HeadraceJob *job = PyObject_New(HeadraceJob, type);
        if (job == NULL) return NULL;
        HEADRACE_SET(payload) HEADRACE_SET(id) HEADRACE_SET(priority) HEADRACE_SET(delay) HEADRACE_SET(run_at)
        HEADRACE_SET(deadline) HEADRACE_SET(max_attempts) HEADRACE_SET(queue) HEADRACE_SET(state) HEADRACE_SET(attempt)
        HEADRACE_SET(fence) HEADRACE_SET(token) HEADRACE_SET(enqueued_at) HEADRACE_SET(lease_until)
        HEADRACE_SET(died_at) HEADRACE_SET(last_error) HEADRACE_SET(cancelled) HEADRACE_SET(ref)
        return (PyObject *)job;
    }
    """
    object headrace_lay(
        PyTypeObject *type, object payload, object id, object priority, object delay, object run_at, object deadline,
        object max_attempts, object queue, object state, object attempt, object fence, object token, object enqueued_at,
        object lease_until, object died_at, object last_error, object cancelled, object ref
    )


cdef inline lay(
    payload, id, priority, delay, run_at, deadline, max_attempts, queue, state, attempt, fence, token, enqueued_at, lease_until,
    died_at, last_error, bint cancelled, ref
):
    return headrace_lay(
        <PyTypeObject *>Job, payload, id, priority, delay, run_at, deadline, max_attempts, queue, state, attempt, fence, token,
        enqueued_at, lease_until, died_at, last_error, cancelled, ref
    )


cdef inline moment(long long micros):
    """As a float, while that is exact (for some 285 years): Python makes and frees one for a third of an integer's cost."""
    if -(1LL << 53) <= micros <= 1LL << 53:
        return <double>micros
    return micros


@cython.locals(made=Job, settings=Settings)
cpdef _prove()
