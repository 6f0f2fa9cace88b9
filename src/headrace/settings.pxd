# How Settings lie in memory, see job.pxd.
cdef extern from *:
    """
    typedef struct {
        PyObject_HEAD
        PyObject *capacity, *clock, *dead_capacity, *deadline_to_dead, *default_deadline, *default_delay, *lease,
            *max_attempts, *max_payload, *overflow, *queue;
    } HeadraceSettings;
    """
    ctypedef struct HeadraceSettings

cdef extern class headrace.settings.Settings [object HeadraceSettings, check_size ignore]:
    cdef object capacity, clock, dead_capacity, deadline_to_dead, default_deadline, default_delay, lease, max_attempts
    cdef object max_payload, overflow, queue
