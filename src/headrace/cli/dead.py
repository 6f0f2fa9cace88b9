"""Dead letters: look at them, send them round again, throw them away."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

import click

from ..job import Job, State
from ..queue import Queue
from .control import queue_option
from .failure import Failure
from .jobs import as_json, as_text, task_of
from .session import Session, common, pass_session
from .stores import opened, queue_names
from .terminal import console, line, span, table

BATCH = 500
"""Jobs moved in one transaction: quick enough that no worker waits for it."""

NARROW = 120
"""Columns of a screen below which a task and its error share one, for the ids take half of it."""

limit_option = click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most so many, oldest first.")
payload_option = click.option("--payload", is_flag=True, help="Show payloads too; they may hold secrets.")


@click.group()
def dead() -> None:
    """Jobs that ran out of attempts, expired or were discarded: they wait for a person."""


@dead.command("list")
@queue_option
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, metavar="N", help="A page.")
@click.option("--after", metavar="ID", help="Begin behind this dead letter: the next page.")
@payload_option
@common()
@pass_session
def list_dead(session: Session, name: str | None, limit: int, after: str | None, payload: bool) -> None:
    """List dead letters, the longest dead first."""
    with opened(session, name) as queue:
        start = None if after is None else find_dead(queue, after)
        jobs = queue.dead(limit, start)
        more = len(jobs) == limit and bool(queue.dead(1, jobs[-1]))
    if session.json:
        session.print_json([as_json(session, job, payload) for job in jobs])
    elif not jobs:
        others = [each for each in queue_names(session) if each != queue.settings.queue] if name is None else []
        elsewhere = f"; --queue for another: {', '.join(others)}" if others else ""
        session.say(f"queue {queue.settings.queue!r}: no dead letters{' behind that one' if after else ''}{elsewhere}")
    else:
        _print_page(session, jobs, payload)
    if more:
        click.echo(f"more: --after {jobs[-1].id}", err=True)


def _print_page(session: Session, jobs: Sequence[Job], payload: bool) -> None:
    from rich.text import Text

    screen = console()
    narrow = screen.width < NARROW

    def what(job: Job) -> list[str]:
        error = line(session.masked(job.last_error or "-"))
        if payload:
            error = f"{error}\n  {line(job.payload.decode('utf-8', 'backslashreplace'))}"
        task = line(task_of(job) or "-", 40)
        return [f"{task}\n{error}"] if narrow else [task, error]

    rows = [
        [
            Text(line(job.id)),
            Text(f"{job.attempt}/{job.max_attempts}"),
            Text(_dead_for(job)),
            *(Text(each, no_wrap=True, overflow="ellipsis") for each in what(job)),
        ]
        for job in jobs
    ]
    last = ["task, error"] if narrow else ["task", "error"]
    screen.print(table(["id", "tries", "dead for", *last], rows, elastic=last[-1], left=last))


def _dead_for(job: Job) -> str:
    """Shorter than a date, so that the error has room."""
    return "-" if job.died_at is None else span((datetime.now(UTC) - job.died_at).total_seconds())


@dead.command()
@click.argument("id")
@queue_option
@payload_option
@common()
@pass_session
def show(session: Session, name: str | None, id: str, payload: bool) -> None:
    """Show one dead letter, its whole error included."""
    with opened(session, name) as queue:
        job = find_dead(queue, id)
    if session.json:
        session.print_json(as_json(session, job, payload))
    else:
        click.echo(as_text(session, job, payload))


@dead.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--all", "everything", is_flag=True, help="All that are dead now.")
@limit_option
@queue_option
@common()
@pass_session
def replay(session: Session, name: str | None, ids: Sequence[str], everything: bool, limit: int | None) -> None:
    """Make dead letters ready again, with all their attempts before them."""
    if bool(ids) + everything + (limit is not None) != 1:
        raise click.UsageError("Name jobs, or give --all or --limit.")
    with opened(session, name) as queue:
        name = queue.settings.queue
        if ids:
            left = [id for id in dict.fromkeys(ids) if not queue.replay(ids=[id])]
            done = len(dict.fromkeys(ids)) - len(left)
            why = f"left dead, or not there: {', '.join(map(repr, left))}"
        else:
            # Those that are dead now: one that dies again meanwhile would otherwise go round for ever.
            total = queue.stats().dead if limit is None else min(limit, queue.stats().dead)
            done = sum(_in_batches(session, "replaying", total, lambda size: queue.replay(limit=size)))
            left = [name] if done < total else []
            why = f"{total - done:,} stay dead: no room in the queue, or an unfinished job has the same id"
    if session.json:
        session.print_json({"queue": name, "replayed": done})
    else:
        session.say(f"queue {name!r}: {done:,} replayed")
    if left:
        raise Failure(why)


@dead.command()
@click.argument("ids", nargs=-1, metavar="")
@limit_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@queue_option
@common()
@pass_session
def purge(session: Session, name: str | None, ids: Sequence[str], limit: int | None, yes: bool) -> None:
    """Throw dead letters away, for good: all of them, or the oldest.

    To be rid of a single one, while nothing is handed out: pause, dead replay ID, cancel ID, resume.
    """
    if ids:
        steps = ["pause", *(f"{step} {id}" for id in ids for step in ("dead replay", "cancel")), "resume"]
        raise click.UsageError(
            "purge takes the oldest and none by name; the way to be rid of one is: "
            + ", ".join(f"headrace {step}" for step in steps)
        )
    with opened(session, name) as queue:
        name = queue.settings.queue
        dead = queue.stats().dead
        total = dead if limit is None else min(limit, dead)
        if total and not yes:
            what = "1 dead letter" if total == 1 else f"{total:,} dead letters"
            click.confirm(f"Throw away {what} of queue {name!r}, for good?", abort=True, err=True)
        done = sum(_in_batches(session, "purging", total, lambda size: len(queue.take_dead(size))))
    if session.json:
        session.print_json({"queue": name, "purged": done})
    else:
        session.say(f"queue {name!r}: {done:,} purged")


def _in_batches(session: Session, what: str, total: int, step: Callable[[int], int]) -> Iterator[int]:
    """How many each step moved, until there is nothing more to move; with a progress bar for who waits."""
    if total <= BATCH or not console(err=True).is_terminal:
        yield from _steps(total, step)
        return
    from rich.progress import Progress

    with Progress(console=console(err=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        for moved in _steps(total, step):
            progress.advance(task, moved)
            yield moved


def _steps(total: int, step: Callable[[int], int]) -> Iterator[int]:
    while total > 0 and (moved := step(min(total, BATCH))):
        total -= moved
        yield moved


def find_dead(queue: Queue, id: str) -> Job:
    """The dead letter with that id. Failure where there is none."""
    job = queue.find(id)
    if job is not None and job.state is State.DEAD:
        return job
    if job is not None:
        # An unfinished job took the id that death had freed, and hides the dead letter from ``find``.
        page = queue.dead(BATCH)
        while page:
            for each in page:
                if each.id == id:
                    return each
            page = queue.dead(BATCH, page[-1])
        raise Failure(f"job {id!r} is not dead, it is {job.state}")
    raise Failure(f"job {id!r}: no such dead letter in queue {queue.settings.queue!r}")
