"""The compiled twin of ``layout.py``. Jobs and settings are read and written as they lie in memory (``job.pxd``); that
they lie so is proved here, and an ImportError when they do not, so that the interpreted core takes over."""

from cpython.object cimport PyObject, PyTypeObject

from .job cimport HeadraceJob, Job
from .settings cimport Settings


cdef extern from *:
    """
    #define HEADRACE_SET(field) Py_INCREF(field); job->field = field;
    static PyObject *headrace_lay(
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


cdef lay(
    payload, id, priority, delay, run_at, deadline, max_attempts, queue, state, attempt, fence, token, enqueued_at, lease_until,
    died_at, last_error, bint cancelled, ref
):
    return headrace_lay(
        <PyTypeObject *>Job, payload, id, priority, delay, run_at, deadline, max_attempts, queue, state, attempt, fence, token,
        enqueued_at, lease_until, died_at, last_error, cancelled, ref
    )


cdef moment(long long micros):
    """As a float, while that is exact (for some 285 years): Python makes and frees one for a third of an integer's cost."""
    if -(1LL << 53) <= micros <= 1LL << 53:
        return <double>micros
    return micros


def _prove():
    cdef object marks = [object() for _ in Job.__struct_fields__]
    cdef Job made = Job(*marks)
    seen = [
        made.payload, made.id, made.priority, made.delay, made.run_at, made.deadline, made.max_attempts, made.queue,
        made.state, made.attempt, made.fence, made.token, made.enqueued_at, made.lease_until, made.died_at,
        made.last_error, made.cancelled, made.ref,
    ]
    cdef Settings settings = Settings(**{name: mark for name, mark in zip(Settings.__struct_fields__, marks)})
    told = [
        settings.queue, settings.capacity, settings.max_attempts, settings.lease, settings.overflow,
        settings.dead_capacity, settings.deadline_to_dead, settings.max_payload, settings.default_delay,
        settings.default_deadline, settings.clock,
    ]
    if seen != marks or told != marks[:len(told)] or len(told) != len(Settings.__struct_fields__):
        raise ImportError("this msgspec lays its structures out in another way")


for _type, _fields in ((Job, 18), (Settings, 11)):
    # As large as their fields: before that is known, not even a look at them is safe.
    if _type.__basicsize__ != object.__basicsize__ + _fields * tuple.__itemsize__:
        raise ImportError("this msgspec makes structures of another size")
_prove()
