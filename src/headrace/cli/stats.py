"""The figures of queues."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ..job import Stats
from ..queue import Queue
from .session import Session, common, pass_session
from .stores import opened, queue_names
from .terminal import console, span, table

if TYPE_CHECKING:
    from rich.table import Table

FIGURES = {
    "ready": "ready", "delayed": "delayed", "inflight": "inflight", "dead": "dead", "acked": "acked",
    "retried": "retried", "unaccounted": "lost",
}  # fmt: skip
"""What the table shows, with its heads: as much as a screen of 80 columns takes."""


@click.command()
@click.option("--queue", "names", multiple=True, metavar="NAME", help="A queue; all of them where none is named.")
@click.option("--watch", is_flag=True, help="Show them again and again, until Ctrl-C.")
@click.option(
    "--interval", metavar="SECONDS", type=click.FloatRange(min=0.1), default=1.0, show_default=True, help="For --watch."
)
@common()
@pass_session
def stats(session: Session, names: Sequence[str], watch: bool, interval: float) -> None:
    """Show what waits, what runs, what is dead.

    Wait is how long the longest waiting of the ready jobs has waited; lost is 0 unless a job vanished or doubled.
    With --json: all the figures, as a list with one object a queue (oldest_ready and unaccounted are these two); with
    --watch too, one such line each time.
    """
    with ExitStack() as stack:
        queues = {name: stack.enter_context(opened(session, name)) for name in names or queue_names(session)}
        if watch:
            _watch(session, queues, interval)
        else:
            _show(session, _look(queues))


def _look(queues: dict[str, Queue]) -> dict[str, Stats]:
    return {name: queue.stats() for name, queue in queues.items()}


def _show(session: Session, found: dict[str, Stats]) -> None:
    if session.json:
        session.print_json([as_json(name, stats) for name, stats in found.items()])
    else:
        console().print(as_table(found))


def _watch(session: Session, queues: dict[str, Queue], interval: float) -> None:
    screen = console()
    try:
        if session.json or not screen.is_terminal:
            while True:
                _show(session, _look(queues))
                time.sleep(interval)
        from rich.live import Live

        with Live(as_table(_look(queues)), console=screen, auto_refresh=False) as live:
            while True:
                time.sleep(interval)
                live.update(as_table(_look(queues)), refresh=True)
    except KeyboardInterrupt:
        return  # the way to end it, so no failure


def as_json(name: str, stats: Stats) -> dict[str, Any]:
    """All figures of a queue; ``oldest_ready`` in seconds."""
    return {"queue": name, **msgspec.structs.asdict(stats), "size": stats.size, "unaccounted": stats.unaccounted}


def as_table(found: dict[str, Stats]) -> Table:
    from rich.text import Text

    rows = [
        [
            Text(name).append(" (paused)", "yellow") if stats.paused else Text(name),
            Text(span(stats.oldest_ready) if stats.ready else "-"),
            *(Text(f"{getattr(stats, each):,}", _style(each, getattr(stats, each))) for each in FIGURES),
        ]
        for name, stats in found.items()
    ]
    return table(["queue", "wait", *FIGURES.values()], rows, elastic="queue")


def _style(name: str, figure: int) -> str:
    return "bold red" if figure and name == "unaccounted" else "red" if figure and name == "dead" else ""
