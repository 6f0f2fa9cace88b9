"""What an app keeps outside of its queues."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from ..errors import ConfigError
from .failure import Failure
from .logs import logging_to
from .session import Session, common, pass_session
from .stores import loaded
from .terminal import console


@click.group()
def outside() -> None:
    """Large arguments of tasks, kept where App(outside=…) says."""


@outside.command()
@click.argument("path", metavar="MODULE:APP")
@click.option("--older", type=click.IntRange(1, 36_500), required=True, metavar="DAYS",
              help="Remove what was written more than so many days ago.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Count only.")
@common()
@pass_session
def prune(session: Session, path: str, older: int, dry_run: bool) -> None:
    """Remove old arguments.

    Nobody looks whether a job still needs them: DAYS must be longer than any job waits, is tried and lies among the
    dead letters.
    """
    with logging_to(session), loaded(session, path) as app:
        if app.outside is None:
            raise ConfigError(f"{path} keeps nothing outside; App(outside=…) does")
        found = app.outside.old(datetime.now(UTC) - timedelta(days=older))
        stay = len(found)
        if not dry_run:
            from rich.progress import track

            screen = console(err=True)
            each = track(found, "pruning", console=screen, transient=True, disable=not screen.is_terminal)
            stay = sum(app.outside.remove([name]) for name, _ in each)
    size, removed = sum(size for _, size in found), len(found) - stay
    if session.json:
        session.print_json({"found": len(found), "bytes": size, "removed": removed})
    else:
        done = "nothing is removed" if dry_run else f"{removed:,} removed"
        session.say(f"{len(found):,} older than {older:,} days, {size / 1_000_000:,.1f} MB; {done}")
    if stay and not dry_run:
        raise Failure(f"{stay:,} could not be removed; the log says why")
