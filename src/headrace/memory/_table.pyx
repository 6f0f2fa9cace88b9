"""The compiled twin of ``_table.py``, by what stands in ``_table.pxd``."""

import secrets

for _number in range(HEADRACE_WORDS):
    set_key(_number, secrets.randbits(64))


class Table:
    def __cinit__(self):
        resize(self, SMALLEST)

    def __dealloc__(self):
        if self.slots != cython.NULL:
            drop_all(self)

    def find(self, id):
        if type(id) is not str:
            if not isinstance(id, str):
                return None
            id = str.__str__(id)  # a plain one, whose comparison runs nobody's code
        return look_up(self, id)

    def enter(self, record):
        if self.count * 5 > self.mask * 3:
            resize(self, (self.mask + 1) * 2)
        return fill(self, record)

    def leave(self, record):
        empty(self, record)

    def clear(self):
        """Of an empty one: the room that it took is given back."""
        assert self.count == 0
        if self.mask >= SMALLEST:
            resize(self, SMALLEST)

    def expect(self, job):
        fetch_for(self, job)

    def look_ahead(self, line):
        fetch_ahead(self, line)

    def values(self):
        found = [at(self, index) for index in range(self.mask + 1)]
        return [record for record in found if record is not None]

    def __len__(self):
        return self.count

    def __contains__(self, id):
        return self.find(id) is not None

    def __getitem__(self, id):
        record = self.find(id)
        if record is None:
            raise KeyError(id)
        return record

    def __iter__(self):
        return iter([record.id for record in self.values()])
