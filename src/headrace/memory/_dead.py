"""Dead letters by serial number, which rises with every death."""

from __future__ import annotations

from collections.abc import Iterator

from ..record import Record


class DeadLetters(dict[int, Record]):
    """At most ``capacity`` of them; when full, the oldest stay, for they show how the trouble began."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity
        self.first = 1
        """None has a lower number: kept track of, so that nobody walks over those that were taken."""
        self.next = 1

    def add(self, record: Record) -> bool:
        """False: there is no room, and the letter is gone."""
        if len(self) >= self.capacity:
            return False
        record.ref = self.next
        self[self.next] = record
        self.next += 1
        return True

    def since(self, serial: int) -> Iterator[Record]:
        """The longest dead first, beginning at ``serial``. A letter may be removed behind the walk."""
        while self.first < self.next and self.first not in self:
            self.first += 1
        for number in range(max(serial, self.first), self.next):
            if number in self:
                yield self[number]

    def last(self, id: str) -> Record | None:
        """The letter of that name that died last."""
        for serial in reversed(self):
            if self[serial].id == id:
                return self[serial]
        return None
