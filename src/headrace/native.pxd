# What is written in C, or as good as that: the machine's clocks, a lock, and looks at numbers and texts.
cimport cython
from cpython.pythread cimport (
    NOWAIT_LOCK, WAIT_LOCK, PyThread_acquire_lock, PyThread_allocate_lock, PyThread_free_lock, PyThread_release_lock,
    PyThread_type_lock,
)
from libc.stdint cimport int64_t  # where -1 may be an error: Cython writes no such long long
from libc.string cimport memchr
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec
from posix.types cimport clockid_t
from posix.unistd cimport usleep

cdef extern from *:
    """
    #ifdef CLOCK_REALTIME_COARSE
    #define HEADRACE_WALL CLOCK_REALTIME_COARSE
    #define HEADRACE_ROUGHLY CLOCK_MONOTONIC_COARSE
    #else
    #define HEADRACE_WALL CLOCK_REALTIME
    #define HEADRACE_ROUGHLY CLOCK_MONOTONIC
    #endif
    #ifdef Py_GIL_DISABLED
    #define HEADRACE_GIL 0
    #else
    #define HEADRACE_GIL 1
    #endif
    static inline int headrace_number(PyObject *given, long long *number) {
        int overflow;
        if (!PyLong_CheckExact(given)) return 0;
    #if PY_VERSION_HEX >= 0x030C0000
        if (PyUnstable_Long_IsCompact((PyLongObject *)given)) {
            *number = PyUnstable_Long_CompactValue((PyLongObject *)given);
            return 1;
        }
    #else
        if (Py_SIZE(given) == 1 || Py_SIZE(given) == 0) {
            *number = Py_SIZE(given) ? (long long)((PyLongObject *)given)->ob_digit[0] : 0;
            return 1;
        }
    #endif
        *number = PyLong_AsLongLongAndOverflow(given, &overflow);
        return !overflow;
    }
    static inline PyObject *headrace_own(PyObject *kind, PyObject *method) {
        if (PyObject_TypeCheck(method, &PyMethodDescr_Type))
            return PyDescr_NewMethod((PyTypeObject *)kind, ((PyMethodDescrObject *)method)->d_method);
        return Py_NewRef(method);
    }
    """
    object headrace_own(object kind, object method)
    bint headrace_number(object given, long long *number)
    bint HEADRACE_GIL
    clockid_t HEADRACE_WALL
    clockid_t HEADRACE_ROUGHLY
    bint PyUnicode_IS_ASCII(object)
    void *PyUnicode_DATA(object)
    Py_ssize_t PyUnicode_GET_LENGTH(object)


@cython.cdivision(True)
cdef inline long long read(clockid_t clock) noexcept:
    cdef timespec now
    clock_gettime(clock, &now)
    return now.tv_sec * 1_000_000LL + now.tv_nsec // 1000


cdef inline bint whole(given, long long least, long long most) except -1:
    cdef long long number
    return headrace_number(given, &number) and least <= number <= most


cdef inline bint same(long long number, given) except -1:
    cdef long long told
    if headrace_number(given, &told):
        return told == number
    return False if type(given) is int else number == given


cdef inline bint ascii_storable(str name) noexcept:
    return memchr(PyUnicode_DATA(name), 0, PyUnicode_GET_LENGTH(name)) == NULL


@cython.final
cdef class Ticks:
    cdef object _clock
    cdef bint _machine
    cdef long long fresh
    cpdef int64_t steady(self) except? -1
    cpdef int64_t wall(self) except? -1
    cpdef int64_t roughly(self) except? -1

@cython.final
cdef class Gate:
    cdef PyThread_type_lock _lock
    cdef bint _taken
    cpdef bint acquire(self) except -1
    cpdef bint release(self) except -1

cpdef bint storable(str name) except -1
