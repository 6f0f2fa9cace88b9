"""Enqueueing a call of a task, with the arguments read as its annotations say."""

from __future__ import annotations

import difflib
import re
import sys
import typing
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from .. import check
from ..clock import SECOND
from ..errors import ConfigError, InvalidJob
from ..job import Job
from .failure import USAGE, Failure
from .session import Session, common, pass_session
from .stores import loaded, refuse_private
from .terminal import line

if TYPE_CHECKING:
    from ..app import App
    from ..tasks.task import Task


class Seconds(click.ParamType[float]):
    """A duration, within the limits of the library's own."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return check.duration("it", float(value)) / SECOND
        except (ConfigError, ValueError):
            self.fail(f"{value!r} is not a number of seconds from 0 to {check.LONGEST:,}", param, ctx)


class Moment(click.ParamType[datetime]):
    """A date and time with its offset from UTC: without one, nobody knows which moment is meant."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a time like 2026-03-01T08:30:00+01:00", param, ctx)
        if moment.tzinfo is None:
            self.fail(f"{value!r} has no offset; write {value}Z for UTC, or one like +01:00", param, ctx)
        return moment


@click.command()
@click.argument("path", metavar="MODULE:APP")
@click.argument("task_name", metavar="TASK")
@click.option("--arg", "pairs", multiple=True, metavar="NAME=VALUE", help="An argument; may be repeated.")
@click.option("--json", "text", metavar="OBJECT", help="All arguments as a JSON object; - reads it from stdin.")
@click.option("--delay", type=Seconds(), metavar="SECONDS", help="Not before so many seconds from now.")
@click.option("--run-at", type=Moment(), metavar="TIME", help="Not before that time: 2026-03-01T08:30:00+01:00.")
@click.option("--priority", type=int, metavar="N", help="The higher number goes first.")
@click.option("--id", metavar="ID", help="The job's id: it is refused while an unfinished job has it.")
@click.option("--queue", "queue_name", metavar="NAME", help="Another queue than the task's own.")
@common(json=False)
@pass_session
def enqueue(
    session: Session, /, path: str, task_name: str, pairs: Sequence[str], text: str | None, queue_name: str | None,
    **options: Any,
) -> None:  # fmt: skip
    """Enqueue a call of a task; prints the job's id.

    TASK is a task's name, or its last part where that is enough. The value of an --arg is taken as text where the
    argument takes text, else it is read as JSON: 5, true, null, [1, 2]. For a JSON answer put --json in front:
    headrace --json enqueue …
    """
    if pairs and text is not None:
        raise click.UsageError("Give --arg or --json, not both.")
    if options["delay"] is not None and options["run_at"] is not None:
        raise click.UsageError("Give --delay or --run-at, not both.")
    from ..tasks.claim import sent
    from ..tasks.codec import Unfit

    app = loaded(session, path)
    with app:
        task = _find(app, path, task_name)
        if text is None:
            text = _object(task, pairs)
        elif text == "-":
            text = sys.stdin.read()
        given = {name: value for name, value in options.items() if value is not None}
        make: Callable[..., Job] = task.options(**given).job
        what = f"task {task.name!r}: "
        try:
            arguments = task.signature.codec.decode(text.encode("utf-8", "surrogateescape"))
            positional, named = task.signature.spread(arguments)
            job = make(*positional, **named)
            queue = app.queue(queue_name or task.settings.queue)
            refuse_private(session, queue)
            with sent(app.outside, queue.settings.queue, [job]) as jobs:
                queue.enqueue(jobs[0])
        except Unfit as unfit:
            raise Failure(f"{what}{unfit}{_typed(pairs, str(unfit))}", USAGE) from None
        except InvalidJob as error:
            if "id" in given:
                raise
            # Not by its id: that was made a moment ago, and nobody has seen it.
            reason = error.reason.removeprefix(what)
            raise Failure(f"{what}{reason}{_typed(pairs, reason)}", USAGE) from None
        if session.json:
            session.print_json({"id": job.id, "queue": queue.settings.queue, "task": task.name})
        else:
            click.echo(job.id)


def _find(app: App, path: str, name: str) -> Task[Any, Any]:
    """By its whole name, or by the end of it."""
    if name in app.tasks:
        return app.tasks[name]
    ends = [full for full in app.tasks if full.rpartition(":")[2] == name or full.rpartition(".")[2] == name]
    if len(ends) == 1:
        return app.tasks[ends[0]]
    if ends:
        raise Failure(f"task {name!r} could be any of {', '.join(sorted(ends))}; write the whole name")
    near = difflib.get_close_matches(name, app.tasks, 3, 0.5) or sorted(app.tasks)
    known = f"there is {', '.join(near)}" if near else "the app has no tasks"
    raise Failure(f"task {name!r} is not in {path}; {known}")


def _object(task: Task[Any, Any], pairs: Sequence[str]) -> str:
    """The pairs as the text of a JSON object."""
    from ..tasks.signature import innermost

    function = innermost(task.function)
    hints = typing.get_type_hints(function) if hasattr(function, "__annotations__") else {}
    values: dict[str, msgspec.Raw] = {}
    for pair in pairs:
        name, mark, value = pair.partition("=")
        if not mark or not name:
            raise click.UsageError(f"--arg {name!r}: write NAME=VALUE.")
        if name in values:
            raise click.UsageError(f"--arg {name!r} is given twice.")
        values[name] = msgspec.Raw(_value(value, hints.get(name, Any)))
    return msgspec.json.encode(values).decode()


def _typed(pairs: Sequence[str], said: str) -> str:
    """What was typed for the argument that a refusal is about: "got `str`" puzzles whoever typed NaN as a number."""
    place = re.match(r"args\.(\w+)", said)
    for pair in pairs:
        if place is not None and pair.partition("=")[0] == place[1]:
            why = " (which is no JSON, so it is a text)" if "got `str`" in said else ""
            return f"; given was --arg {line(pair)}{why}"
    return ""


def _value(text: str, hint: Any) -> bytes:
    """JSON text for one argument."""
    as_text = msgspec.json.encode(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    try:
        msgspec.convert(text, hint)
        return as_text
    except Exception:  # whatever a type makes of it: text is not what it takes
        pass
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return as_text  # the task's own codec will say what is wrong
    return text.encode()
