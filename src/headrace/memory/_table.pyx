"""The compiled twin of ``_table.py``. A dictionary keeps its order: it needs an index beside its entries, leaves a mark
where one is taken out, and is built anew when these have filled it, for ever, since jobs come and go. Here a record
stands where its hash says or as near behind as there is room, and what stands behind one that leaves moves up: one
place in memory for each job, and nothing to sweep."""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF


cdef extern from *:
    void __builtin_prefetch(void *)
    PyObject *PyList_GET_ITEM(list, Py_ssize_t)
    Py_ssize_t PyList_GET_SIZE(list)
    Py_hash_t PyObject_Hash(PyObject *) except? -1


cdef enum:
    SMALLEST = 16
    POOL = 0x3FFF  # in such blocks Python keeps its small objects, each with what is free in it at its head


cdef class Table:
    """More than three places of five are never taken, so searches are short."""

    def __cinit__(self):
        self._slots = NULL
        self._count = 0
        self._resize(SMALLEST)

    def __dealloc__(self):
        cdef Py_ssize_t index
        if self._slots != NULL:
            for index in range(self._mask + 1):
                if self._slots[index].record != NULL:
                    Py_DECREF(<object>self._slots[index].record)
            PyMem_Free(self._slots)

    cdef Py_ssize_t _place(self, str id, Py_hash_t hash) except -1:
        """Where it is, or would be."""
        cdef Py_ssize_t index = hash & self._mask
        cdef Slot *slot = &self._slots[index]
        while slot.record != NULL:
            if slot.hash == hash and ((<Record>slot.record).id is id or (<Record>slot.record).id == id):
                break
            index = (index + 1) & self._mask
            slot = &self._slots[index]
        return index

    cdef int _resize(self, Py_ssize_t size) except -1:
        cdef Slot *old = self._slots
        cdef Slot *new = <Slot *>PyMem_Calloc(size, sizeof(Slot))
        cdef Py_ssize_t index, place
        if new == NULL:
            raise MemoryError
        if old != NULL:
            for index in range(self._mask + 1):
                if old[index].record != NULL:
                    place = old[index].hash & (size - 1)
                    while new[place].record != NULL:
                        place = (place + 1) & (size - 1)
                    new[place] = old[index]
            PyMem_Free(old)
        self._slots = new
        self._mask = size - 1
        self._found = 0

    cpdef Record find(self, id):
        cdef Slot *slot
        if type(id) is not str:
            if not isinstance(id, str):
                return None
            id = str.__str__(id)  # a plain one, whose comparison runs nobody's code
        self._found = self._place(<str>id, hash(id))
        slot = &self._slots[self._found]
        return None if slot.record == NULL else <Record>slot.record

    cpdef bint enter(self, Record record) except -1:
        cdef Py_hash_t number = hash(record.id)
        cdef Slot *slot
        if self._count * 5 > self._mask * 3:
            self._resize((self._mask + 1) * 2)
        slot = &self._slots[self._place(record.id, number)]
        if slot.record != NULL:
            return False
        slot.hash = number
        slot.record = <PyObject *>record
        Py_INCREF(record)
        self._count += 1
        return True

    cpdef int leave(self, Record record) except -1:
        cdef Slot *slots = self._slots
        cdef Py_ssize_t mask = self._mask
        cdef Py_ssize_t index, hole = self._found
        if slots[hole].record != <PyObject *>record:
            hole = self._place(record.id, hash(record.id))
            if slots[hole].record != <PyObject *>record:
                raise KeyError(record.id)
        index = hole
        while True:
            index = (index + 1) & mask
            if slots[index].record == NULL:
                break
            # It may move up only where it does not come before the place that its hash says.
            if ((index - slots[index].hash) & mask) >= ((index - hole) & mask):
                slots[hole] = slots[index]
                hole = index
        slots[hole].record = NULL
        self._count -= 1
        Py_DECREF(record)

    cpdef clear(self):
        """Of an empty one: the room that it took is given back."""
        assert self._count == 0
        if self._mask >= SMALLEST:
            self._resize(SMALLEST)

    cdef int expect(self, id) except -1:
        if type(id) is str:
            __builtin_prefetch(&self._slots[hash(id) & self._mask])

    cdef int look_ahead(self, list line, Py_ssize_t first) except -1:
        """What was written long ago is in no cache any more, and waiting for memory would be the most that a job costs:
        so a record is fetched, three jobs later its id, and then its place and what frees the id. No reference is
        counted meanwhile, for that would be to wait."""
        cdef PyObject *record
        cdef PyObject *id
        if first + 9 >= PyList_GET_SIZE(line):
            return 0
        record = PyList_GET_ITEM(line, first + 9)
        __builtin_prefetch(record)
        __builtin_prefetch(<char *>record + 64)
        record = PyList_GET_ITEM(line, first + 6)
        if record != <PyObject *>None:
            __builtin_prefetch(<PyObject *>(<Record>record).id)
        record = PyList_GET_ITEM(line, first + 3)
        if record != <PyObject *>None:
            id = <PyObject *>(<Record>record).id
            __builtin_prefetch(&self._slots[PyObject_Hash(id) & self._mask])
            __builtin_prefetch(<void *>(<size_t>id & ~POOL))

    def values(self):
        cdef Py_ssize_t index
        return [<object>self._slots[index].record for index in range(self._mask + 1) if self._slots[index].record != NULL]

    def __len__(self):
        return self._count

    def __contains__(self, id):
        return self.find(id) is not None

    def __getitem__(self, id):
        cdef Record record = self.find(id)
        if record is None:
            raise KeyError(id)
        return record

    def __iter__(self):
        return iter([record.id for record in self.values()])
