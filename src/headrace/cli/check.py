"""Is everything in place? The store is opened, written and read; the app is imported."""

from __future__ import annotations

from pathlib import Path

import click

from .. import chosen
from ..check import LONGEST
from ..connect import connect
from ..errors import Unavailable
from ..job import Job, Stats
from .failure import Failure
from .session import Session, common, pass_session
from .stores import as_it_is, loaded, names_in, place, postgres, sqlite_path, warn_if_private


@click.command()
@click.argument("path", metavar="[MODULE:APP]", required=False)
@click.option("--create", is_flag=True, help="Make the file or the tables where there are none yet, or old ones.")
@common()
@pass_session
def check(session: Session, path: str | None, create: bool) -> None:
    """Check the store, and the app where one is named.

    The store is opened, a job that cannot start for a hundred years is enqueued in one of its queues and cancelled,
    and the figures are read.
    """
    app = loaded(session, path) if path else None
    notes: list[str] = []
    made = sqlite_path(session.url)
    fresh = made is not None and not made.exists()
    there = _names(session, create)
    wanted = [] if app is None else app.queues
    # One that is there already, if it can be: looking makes no queue.
    name = next(iter([*(each for each in wanted if each in there), *there, *wanted]), "default")
    stats = _probe(session, name, create)
    report: dict[str, object] = {"url": session.shown_url, "usable": True, "new": fresh, "size": stats.size}
    lines = [f"store: {session.shown_url} can be opened, written and read{' (newly made)' if fresh else ''}"]
    if session.url.startswith("memory:"):
        report["core"] = core = chosen.running()
        hint = "" if core == chosen.COMPILED else "; installed where a C compiler is, it would be compiled"
        lines.append(f"core: {core}{hint}")
    if made is not None:
        version, defect = sqlite_version()
        report |= {"sqlite": version, "file": str(made), "wal_reset_defect": defect}
        lines.append(f"file: {made}, SQLite {version}")
        if defect:
            notes.append(
                f"SQLite {version} has the WAL-reset defect of 3.7.0 to 3.51.2: a rare race of two connections may "
                "damage the file. It takes 3.51.3 or later, which comes with an update of the operating system or "
                "with a newer build of Python; until then keep backups"
            )
    if (server := postgres(session.url)) is not None:
        report |= {"postgresql": server.version(), "schema": server.schema}
        lines.append(f"server: PostgreSQL {report['postgresql']}, schema {server.schema}; headrace doctor looks deeper")
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


def _names(session: Session, create: bool) -> list[str]:
    """The queues that are there. Unavailable without a file, Failure where it holds none, unless they may be made."""
    where = place(session.url)
    names = names_in(where)
    if where is None or names or create:
        return names
    if not isinstance(where, Path) or where.exists():
        what = "file" if isinstance(where, Path) else "URL"
        raise Failure(f"{where} holds no queues; is it the right {what}? --create makes them")
    raise Unavailable(f"{where}: no such file; is the URL misspelt? --create makes it")


def _probe(session: Session, name: str, create: bool) -> Stats:
    job = Job(payload=b"headrace check", delay=float(LONGEST))
    with connect(session.url, queue=name, **({} if create else as_it_is(place(session.url)))) as queue:
        warn_if_private(session, [queue])
        queue.enqueue(job)
        queue.cancel(job.id)
        return queue.stats()


def sqlite_version() -> tuple[str, bool]:
    """The version in use, and whether it is one with the WAL-reset defect."""
    import sqlite3

    from ..sqlite.doctor import has_defect

    return sqlite3.sqlite_version, has_defect(sqlite3.sqlite_version_info)
