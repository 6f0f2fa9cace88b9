"""Is everything in place? The store is opened, written and read; the app is imported."""

from __future__ import annotations

import click

from ..check import LONGEST
from ..connect import connect
from ..job import Job, Stats
from .session import Session, common, pass_session
from .stores import loaded, sqlite_path

WAL_RESET_DEFECT = ((3, 7, 0), (3, 51, 2))
"""SQLite versions, both included, in which two connections that write and checkpoint in the same moment may
damage a file in WAL mode; rare, and mended in 3.51.3."""


@click.command()
@click.argument("path", metavar="[MODULE:APP]", required=False)
@common()
@pass_session
def check(session: Session, path: str | None) -> None:
    """Check the store, and the app where one is named.

    The store is opened, a job that cannot start for a hundred years is enqueued in the queue "default" and
    cancelled, and the figures are read.
    """
    app = loaded(session, path) if path else None
    notes: list[str] = []
    made = sqlite_path(session.url)
    fresh = made is not None and not made.exists()
    stats = _probe(session)
    report: dict[str, object] = {"url": session.shown_url, "usable": True, "new": fresh, "size": stats.size}
    lines = [f"store: {session.shown_url} can be opened, written and read{' (newly made)' if fresh else ''}"]
    if made is not None:
        version, defect = sqlite_version()
        report |= {"sqlite": version, "file": str(made), "wal_reset_defect": defect}
        lines.append(f"file: {made}, SQLite {version}")
        if defect:
            notes.append(
                f"SQLite {version} has the WAL-reset defect of 3.7.0 to 3.51.2: a rare race of two processes may "
                "damage the file; use 3.51.3 or later where you can"
            )
    if app is not None:
        app.check()
        report["tasks"] = [
            {"name": name, "queue": task.settings.queue, "kind": task.kind} for name, task in sorted(app.tasks.items())
        ]
        lines += [f"task: {name} on queue {task.settings.queue!r}" for name, task in sorted(app.tasks.items())]
        if not app.tasks:
            notes.append(f"{path} has no tasks, so it can enqueue but not work")
    if session.json:
        session.print_json(report | {"notes": notes})
    else:
        session.say("\n".join(lines))
    for note in notes:
        session.warn(note)


def _probe(session: Session) -> Stats:
    job = Job(payload=b"headrace check", delay=float(LONGEST))
    with connect(session.url) as queue:
        queue.enqueue(job)
        queue.cancel(job.id)
        return queue.stats()


def sqlite_version() -> tuple[str, bool]:
    """The version in use, and whether it is one with the WAL-reset defect."""
    import sqlite3

    return sqlite3.sqlite_version, WAL_RESET_DEFECT[0] <= sqlite3.sqlite_version_info <= WAL_RESET_DEFECT[1]
