"""Commands that change what a queue does: pause, resume, cancel."""

from __future__ import annotations

import click

from ..job import State
from .failure import Failure
from .session import Session, common, pass_session
from .stores import opened

queue_option = click.option(
    "--queue", "name", metavar="NAME", help='The queue; the only one there is unless given, else "default".'
)


@click.command()
@queue_option
@common()
@pass_session
def pause(session: Session, name: str | None) -> None:
    """Hand out nothing until resumed.

    Holds for every worker of the queue; what runs goes on, and new jobs are taken in.
    """
    _set_paused(session, name, True)


@click.command()
@queue_option
@common()
@pass_session
def resume(session: Session, name: str | None) -> None:
    """Hand out jobs again."""
    _set_paused(session, name, False)


def _set_paused(session: Session, name: str | None, paused: bool) -> None:
    with opened(session, name) as queue:
        name = queue.settings.queue
        (queue.pause if paused else queue.resume)()
    if session.json:
        session.print_json({"queue": name, "paused": paused})
    else:
        session.say(f"queue {name!r}: {'paused' if paused else 'handing out'}")


@click.command()
@click.argument("id")
@queue_option
@common()
@pass_session
def cancel(session: Session, name: str | None, id: str) -> None:
    """Cancel a job.

    A waiting one never starts. A running one is told at its next heartbeat, and is not retried.
    """
    with opened(session, name) as queue:
        name = queue.settings.queue
        gone = queue.cancel(id)
        job = None if gone else queue.find(id)
    running = job is not None and job.state is State.INFLIGHT
    if session.json:
        session.print_json({"queue": name, "id": id, "cancelled": gone, "running": running})
    if gone:
        text = "cancelled; it will not start"
    elif running:
        text = "it runs; it is told at its next heartbeat, and is not retried"
    elif job is not None and job.state is State.DEAD:
        raise Failure(f"job {id!r} is dead already; see headrace dead show")
    else:
        raise Failure(f"job {id!r}: no such job waits or runs in queue {name!r}; it may be done")
    if not session.json:
        session.say(f"job {id!r}: {text}")
