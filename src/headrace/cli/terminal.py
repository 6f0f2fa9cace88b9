"""What is shown to people: text from elsewhere made harmless, durations and times made readable, tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

_UNITS = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def span(seconds: float) -> str:
    """A duration in its two largest units: ``350 ms``, ``12.3 s``, ``3 min 20 s``, ``2 d 4 h``."""
    if seconds < 1:
        return f"{int(seconds * 1000)} ms" if seconds > 0 else "0 s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    size, unit, smaller, smaller_unit = next(units for units in _UNITS if whole >= units[0])
    rest = whole % size // smaller
    return f"{whole // size} {unit} {rest} {smaller_unit}" if rest else f"{whole // size} {unit}"


def moment(when: datetime | None) -> str:
    """A time in UTC to the second; a dash for none."""
    return "-" if when is None else when.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def safe(text: str) -> str:
    """Text from a job, fit for a terminal: control characters would move its cursor or retitle its window."""
    return "".join(each if each.isprintable() or each in "\n\t" else _escaped(each) for each in text)


def line(text: str, longest: int = 80) -> str:
    """The beginning of a text as one harmless line."""
    flat = " ".join(safe(text[: 4 * longest]).split())
    return flat if len(flat) <= longest else f"{flat[: longest - 1]}…"


def _escaped(each: str) -> str:
    return each.encode("unicode_escape").decode("ascii")


def console(*, err: bool = False) -> Console:
    """Wide enough for any table where nobody looks: what is piped is not cut to the width of a screen."""
    from rich.console import Console

    made = Console(stderr=err, highlight=False, soft_wrap=False)
    return made if made.is_terminal else Console(stderr=err, highlight=False, width=500)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[RenderableType]], *, elastic: str, left: Sequence[str] = ()
) -> Table:
    """A plain table. Where the screen is too narrow the ``elastic`` column gives way; the first, that one and those
    of ``left`` stand at the left, figures at the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for name in columns:
        justify: Literal["left", "right"] = "left" if name in (columns[0], elastic, *left) else "right"
        made.add_column(name, justify=justify, vertical="top", no_wrap=name != elastic, overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made
