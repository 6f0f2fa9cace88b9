"""Done jobs, where a queue in PostgreSQL keeps them for a while (``archive=`` seconds)."""

from __future__ import annotations

import click

from ..clock import to_datetime
from ..errors import Unsupported
from ..job import Job
from .control import queue_option
from .failure import Failure
from .jobs import as_json, task_of
from .session import Session, common, pass_session
from .stores import names_in, postgres
from .terminal import console, line, moment, table


@click.command()
@click.argument("id", required=False)
@queue_option
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, metavar="N", help="At most so many."
)
@click.option("--payload", is_flag=True, help="With --json: payloads too; they may hold secrets.")
@common()
@pass_session
def archive(session: Session, id: str | None, name: str | None, limit: int, payload: bool) -> None:
    """List jobs that are done, the last one first; or those that had one id.

    A queue keeps them where its archive setting says for how long.
    """
    server = postgres(session.url)
    if server is None:
        raise Unsupported(f"archive: {session.shown_url} keeps no done jobs; postgresql:// does, with archive=SECONDS")
    server.refuse_old()
    names = names_in(server)
    name = name or (names[0] if len(names) == 1 else "default")
    if name not in names:
        raise Failure(f"queue {name!r} is not in {server}; there is {', '.join(names) or 'none'}")
    found = []
    for job_id, data, priority, attempts, enqueued, run_at, deadline, attempt, fence, error, done in server.archived(
        name, limit, id
    ):
        job = Job(
            payload=data, id=job_id, priority=priority, max_attempts=attempts, queue=name, attempt=attempt, fence=fence,
            enqueued_at=to_datetime(enqueued), run_at=to_datetime(run_at), last_error=error,
            deadline=None if deadline is None else to_datetime(deadline),
        )  # fmt: skip
        found.append((job, to_datetime(done)))
    if session.json:
        session.print_json([as_json(session, job, payload) | {"state": "done", "done_at": done} for job, done in found])
    elif not found:
        session.say(f"queue {name!r}: nothing in the archive{' with that id' if id else ''}; archive=SECONDS fills it")
    else:
        rows = [
            [
                line(job.id),
                f"{job.attempt}/{job.max_attempts}",
                moment(job.enqueued_at),
                moment(done),
                line(task_of(job) or "-"),
            ]
            for job, done in found
        ]
        console().print(table(["id", "tries", "enqueued", "done", "task"], rows, elastic="task"))
