"""Arrays in the server's own format, packed a column at a time.

The driver can do that for any type, by asking each element for its own; for thousands of jobs that is most of what
an enqueue costs. What is the same in all jobs of a batch, as most columns are, is sent once.

    number of dimensions, whether there are NULLs, type of the elements; length, lower bound; length and bytes of each
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, ClassVar, TypeVar

from psycopg.abc import AdaptContext
from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format

T = TypeVar("T")
_HEADER, _EMPTY, _LENGTH = Struct(">iiIii"), Struct(">iiI"), Struct(">i")
_NULL = _LENGTH.pack(-1)
_BOOL, _INT, _BIG = Struct(">i?"), Struct(">ii"), Struct(">iq")


class Packed(bytes):
    """What goes over the wire; each kind of array has a class of its own, for that is how the driver tells them."""

    oid: ClassVar[int]
    """The type of the array."""
    element: ClassVar[int]


class Texts(Packed):
    oid, element = 1009, 25


class Blobs(Packed):
    oid, element = 1001, 17


class Bools(Packed):
    oid, element = 1000, 16


class Ints(Packed):
    oid, element = 1007, 23


class Bigs(Packed):
    oid, element = 1016, 20


def _bytes(value: bytes) -> bytes:
    return _LENGTH.pack(len(value)) + value


PACK: dict[type[Packed], Callable[[Any], bytes]] = {
    Texts: lambda value: _bytes(value.encode()),
    Blobs: _bytes,
    Bools: lambda value: _BOOL.pack(1, value),
    Ints: lambda value: _INT.pack(4, value),
    Bigs: lambda value: _BIG.pack(8, value),
}


def pack(kind: type[Packed], values: list[Any]) -> Packed:
    """An array of one dimension; None is NULL."""
    if not values:
        return kind(_EMPTY.pack(0, 0, kind.element))
    one = PACK[kind]
    if kind is not Texts and _alike(values):
        body = (_NULL if values[0] is None else one(values[0])) * len(values)
        nulls = values[0] is None
    else:
        nulls = None in values
        body = b"".join([_NULL if value is None else one(value) for value in values] if nulls else map(one, values))
    return kind(_HEADER.pack(1, nulls, kind.element, len(values), 1) + body)


COLUMNS: dict[str, type[Packed]] = {
    "ids": Texts,
    "payloads": Blobs,
    "priorities": Ints,
    "attempts": Ints,
    "absolutes": Bools,
    "ats": Bigs,
    "deadlines": Bigs,
    "enqueueds": Bigs,
}
"""What ``put.sql`` takes."""
SAME = {"priorities", "attempts", "absolutes", "ats"}
"""Of these, the first one says it all where all elements are alike. Where all are NULL, an empty array does."""


def packed(columns: dict[str, Any]) -> dict[str, object]:
    """The same parameters, with those of ``COLUMNS`` packed."""
    return {name: _column(name, value) if name in COLUMNS else value for name, value in columns.items()}


def _column(name: str, values: list[Any]) -> Packed:
    if name in SAME and _alike(values):
        values = values[:1]
    elif values.count(None) == len(values):
        values = []
    return pack(COLUMNS[name], values)


def _alike(values: list[Any]) -> bool:
    return bool(values) and values[0] == values[-1] and values.count(values[0]) == len(values)


def dumper(kind: type[Packed]) -> type[Dumper]:
    """How the driver sends it: as it is."""

    class AsItIs(Dumper):
        format = Format.BINARY
        oid = kind.oid

        def dump(self, obj: Any) -> Buffer:
            return bytes(obj)

    return AsItIs


DUMPERS = {kind: dumper(kind) for kind in PACK}


def register(context: AdaptContext) -> None:
    for kind, made in DUMPERS.items():
        if context.adapters is not None:
            context.adapters.register_dumper(kind, made)
