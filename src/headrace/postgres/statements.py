"""The statements of ``sql/postgres/queries``, for the schema that they shall work in."""

from __future__ import annotations

from functools import cache

from .. import check, sql
from .schema import quoted


@cache
def statements(schema: str) -> dict[str, bytes]:
    """By name. The schema is an identifier, and the only thing that is ever put into their text."""
    check.identifier("schema", schema)
    return {name: quoted(text, schema).encode() for name, text in sql.queries("postgres").items()}
