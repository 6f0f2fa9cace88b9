"""The settings of a queue in PostgreSQL beside those that every queue has; what else is in its URL is the driver's."""

from __future__ import annotations

from typing import Any

import msgspec

from .. import check
from ..clock import SECOND
from ..errors import ConfigError
from ..settings import Settings


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Checked once; a bad one raises ConfigError with its name, value and range."""

    schema: str
    """Where the tables are."""
    connections: int
    """How many this process opens at most."""
    patience: float
    """Seconds for which a step waits out a server that is away."""
    poll: float
    """Seconds between two looks for what nobody told us of."""
    migrate: bool
    """Make and upgrade the tables when they are first needed."""
    direct: str | None
    """The server's own address, for being woken, where the URL leads to a pooler that shares sessions."""
    archive: int
    """Microseconds for which done jobs are kept in the table of that name; 0: not at all."""
    dead_keep: int
    """Microseconds after which a dead letter is thrown away, and counted as dropped; 0: they stay."""

    @classmethod
    def make(cls, given: dict[str, Any], patience: float = 15.0) -> tuple[Options, Settings]:
        """Both kinds of settings, from what a URL and a caller give. ``patience``: where they do not say."""
        theirs = {name: value for name, value in given.items() if name not in OPTIONS}
        made = cls(
            schema=check.identifier("schema", given.get("schema", "headrace")).lower(),
            connections=check.whole("connections", given.get("connections", 8), 1, 1_000),
            patience=check.duration("patience", given.get("patience", patience)) / SECOND,
            poll=check.duration("poll", given.get("poll", 1.0), zero=False) / SECOND,
            migrate=check.flag("migrate", given.get("migrate", True)),
            direct=_address("direct", given.get("direct")),
            archive=check.duration("archive", given.get("archive") or 0),
            dead_keep=check.duration("dead_keep", given.get("dead_keep") or 0),
        )
        return made, Settings.make(also=OPTIONS, **theirs)


OPTIONS = Options.__struct_fields__


def _address(name: str, value: object) -> str | None:
    """ConfigError for what the driver cannot read, without its text: it repeats what may be a password."""
    import psycopg  # an extra; the names of the settings are known without it
    from psycopg.conninfo import conninfo_to_dict

    try:
        if value is None or (isinstance(value, str) and conninfo_to_dict(value)):
            return value
    except psycopg.ProgrammingError:
        pass
    raise ConfigError(f"{name}: not an address like postgresql://user@host:5432/database")
