cdef int _FEW

cdef class LazyHeap:
    cdef public object alive
    cdef public list entries
    cdef public Py_ssize_t stale
    cpdef push(self, tuple entry)
    cpdef tuple peek(self)
    cpdef tuple pop(self)
    cpdef forget(self)
