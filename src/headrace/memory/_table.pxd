# The compiled table of records by id. A dictionary keeps its order: it needs an index beside its entries, leaves a mark
# where one is taken out, and is built anew when these have filled it, for ever, since jobs come and go. Here a record
# stands where its hash says or as near behind as there is room, and what stands behind one that leaves moves up: one
# place in memory for each job, and nothing to sweep. More than three places of five are never taken, so searches are
# short.
cimport cython
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from ..job cimport Job
from ..record cimport Record
from ._fifo cimport Fifo

# The hash is a sum of products of the id's words, each plus a random number of its own (NH, of UMAC, RFC 4418): whoever
# does not know these cannot choose ids that meet. It takes a third of the instructions of Python's own.
cdef extern from *:
    """
    #define HEADRACE_WORDS 128  /* 255 characters, the longest id, take no more */
    static unsigned long long headrace_keys[HEADRACE_WORDS];
    #ifndef __SIZEOF_INT128__
    #define headrace_hash PyObject_Hash
    #else
    static inline Py_hash_t headrace_hash(PyObject *id) {
        const char *at = (const char *)PyUnicode_DATA(id);
        size_t left = (size_t)PyUnicode_GET_LENGTH(id) * PyUnicode_KIND(id);
        const unsigned long long *key = headrace_keys;
        unsigned long long words[2];
        unsigned __int128 sum = left;
        if (left > 8 * HEADRACE_WORDS) left = 8 * HEADRACE_WORDS;
        for (; left >= 16; at += 16, left -= 16, key += 2) {
            memcpy(words, at, 16);
            sum += (unsigned __int128)(words[0] + key[0]) * (words[1] + key[1]);
        }
        if (left) {
            words[0] = words[1] = 0;
            if (key == headrace_keys) memcpy(words, at, left);
            else memcpy(words, at + left - 16, 16);  /* some of it once more: quicker than a part of a word */
            sum += (unsigned __int128)(words[0] + key[0]) * (words[1] + key[1]);
        }
        return (Py_hash_t)(sum ^ (sum >> 64));
    }
    #endif
    """
    unsigned long long *headrace_keys
    Py_hash_t headrace_hash(object) noexcept
    enum: HEADRACE_WORDS

cdef extern from *:
    Py_ssize_t PyList_GET_SIZE(list)
    void __builtin_prefetch(void *)
    PyObject *PyList_GET_ITEM(list, Py_ssize_t)

cdef enum:
    SMALLEST = 16
    POOL = 0x3FFF  # in such blocks Python keeps its small objects, each with what is free in it at its head

cdef struct Slot:
    Py_hash_t hash
    PyObject *record

@cython.final
cdef class Table:
    cdef Slot *slots
    cdef Py_ssize_t mask, count, found
    cdef str last
    cdef Py_hash_t last_hash
    cpdef Record find(self, id)
    cpdef bint enter(self, Record record) except -1
    cpdef int leave(self, Record record) except -1
    cpdef clear(self)
    @cython.locals(index=Py_ssize_t)
    cpdef list values(self)
    cdef int expect(self, Job job) except -1
    cdef int look_ahead(self, Fifo line) except -1


cdef inline Py_hash_t hash_of(Table table, str id) except? -1:
    """The last one is remembered: most are asked for more than once in a row."""
    if id is not table.last:
        table.last = id
        table.last_hash = headrace_hash(id)
    return table.last_hash


cdef inline Slot *place(Table table, str id, Py_hash_t hash) except NULL:
    """Where it is, or would be."""
    cdef Py_ssize_t index = hash & table.mask
    cdef Slot *slot = &table.slots[index]
    while slot.record != NULL:
        if slot.hash == hash and ((<Record>slot.record).id is id or (<Record>slot.record).id == id):
            break
        index = (index + 1) & table.mask
        slot = &table.slots[index]
    return slot


cdef inline int resize(Table table, Py_ssize_t size) except -1:
    cdef Slot *old = table.slots
    cdef Slot *new = <Slot *>PyMem_Calloc(size, sizeof(Slot))
    cdef Py_ssize_t index, to
    if new == NULL:
        raise MemoryError
    if old != NULL:
        for index in range(table.mask + 1):
            if old[index].record != NULL:
                to = old[index].hash & (size - 1)
                while new[to].record != NULL:
                    to = (to + 1) & (size - 1)
                new[to] = old[index]
        PyMem_Free(old)
    table.slots = new
    table.mask = size - 1
    table.found = 0


cdef inline Record look_up(Table table, str id):
    cdef Slot *slot = place(table, id, hash_of(table, id))
    table.found = slot - table.slots
    return None if slot.record == NULL else <Record>slot.record


cdef inline bint fill(Table table, Record record) except -1:
    cdef Py_hash_t number = hash_of(table, record.id)
    cdef Slot *slot = place(table, record.id, number)
    if slot.record != NULL:
        return False
    slot.hash = record.mark = number
    slot.record = <PyObject *>record
    Py_INCREF(record)
    table.count += 1
    return True


cdef inline int empty(Table table, Record record) except -1:
    cdef Slot *slots = table.slots
    cdef Py_ssize_t mask = table.mask
    cdef Py_ssize_t index, hole = table.found
    if slots[hole].record != <PyObject *>record:
        hole = place(table, record.id, record.mark) - slots
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
    table.count -= 1
    Py_DECREF(record)


cdef inline void fetch(PyObject *thing, Py_ssize_t size) noexcept:
    """Wherever in a line of the cache it begins: its last byte may lie in one more."""
    cdef Py_ssize_t at
    for at in range(0, size, 64):
        __builtin_prefetch(<char *>thing + at)
    __builtin_prefetch(<char *>thing + size - 1)


cdef inline int fetch_for(Table table, Job job) except -1:
    fetch(<PyObject *>job, 160)
    if type(job.id) is str:
        __builtin_prefetch(&table.slots[hash_of(table, <str>job.id) & table.mask])


cdef inline int fetch_ahead(Table table, Fifo line) except -1:
    """What was written long ago is in no cache any more, and waiting for memory would be the most that a job costs:
    so a record is fetched, three jobs later its id, and then its place and what frees the id. No reference is
    counted meanwhile, for that would be to wait."""
    cdef PyObject *record
    if line.first + 9 >= PyList_GET_SIZE(line.items):
        return 0
    record = PyList_GET_ITEM(line.items, line.first + 9)
    fetch(record, 128)
    record = PyList_GET_ITEM(line.items, line.first + 6)
    if record != <PyObject *>None:
        fetch(<PyObject *>(<Record>record).id, 85)
    record = PyList_GET_ITEM(line.items, line.first + 3)
    if record != <PyObject *>None:
        __builtin_prefetch(&table.slots[(<Record>record).mark & table.mask])
        __builtin_prefetch(<void *>(<size_t>(<PyObject *>(<Record>record).id) & ~POOL))


cdef inline object at(Table table, Py_ssize_t index):
    return None if table.slots[index].record == NULL else <object>table.slots[index].record


cdef inline void set_key(int number, unsigned long long key) noexcept:
    headrace_keys[number] = key


cdef inline int drop_all(Table table) except -1:
    cdef Py_ssize_t index
    for index in range(table.mask + 1):
        if table.slots[index].record != NULL:
            Py_DECREF(<object>table.slots[index].record)
    PyMem_Free(table.slots)
