"""Arrays that are packed here arrive there as what they were."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from headrace.postgres import arrays
from headrace.postgres.arrays import Bigs, Blobs, Bools, Ints, Packed, Texts, pack

COLUMNS: list[tuple[type[Packed], str, list[Any]]] = [
    (Texts, "text[]", ["a", "ä€😀", "", 'with "quotes", {braces} and \\', "NULL", None, "a"]),
    (Texts, "text[]", ["same", "same"]),
    (Blobs, "bytea[]", [b"", b"\0\xff", None, b"x" * 5_000]),
    (Blobs, "bytea[]", [b"same"] * 3),
    (Bools, "bool[]", [True, False, True]),
    (Bools, "bool[]", [False] * 4),
    (Ints, "int[]", [-(2**31), 0, 2**31 - 1, None]),
    (Ints, "int[]", [7] * 1_000),
    (Bigs, "bigint[]", [-(2**63), 1, 2**63 - 1]),
    (Bigs, "bigint[]", [None, None]),
    (Bigs, "bigint[]", [None, 5, None]),
    (Bigs, "bigint[]", []),
    (Texts, "text[]", []),
]


@pytest.mark.parametrize(("kind", "name", "values"), COLUMNS)
def test_an_array_arrives_as_what_it_was(dsn: str, kind: type[Packed], name: str, values: list[Any]) -> None:
    with psycopg.connect(dsn) as connection:
        arrays.register(connection)
        arrived = connection.execute(f"SELECT %s::{name}".encode(), (pack(kind, values),)).fetchone()
    assert arrived == (values,)


def test_a_number_that_does_not_fit_is_refused_rather_than_cut() -> None:
    with pytest.raises(Exception, match=r"format requires|argument out of range"):
        pack(Ints, [2**31])
