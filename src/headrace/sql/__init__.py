"""SQL as files: one statement each under ``<dialect>/queries``, named after the call that runs it.

``<dialect>/migrations`` hold how the tables came to be, ``<dialect>/schema.sql`` what they are now; a test
proves the two equal.
"""

from __future__ import annotations

from importlib import resources


def queries(dialect: str) -> dict[str, str]:
    """Statement text by name."""
    folder = resources.files(__package__).joinpath(dialect, "queries")
    return {
        entry.name.removesuffix(".sql"): entry.read_text("utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    }


def migrations(dialect: str) -> list[tuple[int, str, str]]:
    """(number, name, script) of every migration, in order; files are named ``0001_what_it_does.sql``."""
    folder = resources.files(__package__).joinpath(dialect, "migrations")
    found = []
    for entry in folder.iterdir():
        if entry.name.endswith(".sql"):
            number, _, name = entry.name.removesuffix(".sql").partition("_")
            found.append((int(number), name, entry.read_text("utf-8")))
    return sorted(found)
