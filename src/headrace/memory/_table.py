"""The unfinished records by id: a dictionary, and compiled a table of its own (``_table.pyx``)."""

from __future__ import annotations

from ..job import Job
from ..record import Record
from ._fifo import Fifo


class Table(dict[str, Record]):
    """Ids are unique in it. Whoever looks for what is no id at all finds nothing."""

    def find(self, id: str) -> Record | None:
        return self.get(id)

    def enter(self, record: Record) -> bool:
        """False, and nothing is changed, where the id is taken."""
        return self.setdefault(record.id, record) is record

    def leave(self, record: Record) -> None:
        """Out again; it is in here."""
        del self[record.id]

    # Compiled, these two have the processor fetch from memory what will be needed soon, and change nothing.

    def expect(self, job: Job) -> None:
        """It will be looked at, and its id will enter."""

    def look_ahead(self, line: Fifo) -> None:
        """What stands in ``line`` behind the first will be taken and will leave."""
