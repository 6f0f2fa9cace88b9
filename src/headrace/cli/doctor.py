"""What will hurt: settings of the server or the file, and figures of the queues, each with what mends it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import click
import msgspec

from ..connect import connect, split_url
from .failure import NOT_SO
from .migrate import url_argument
from .session import Session, common, pass_session
from .stores import names_in, postgres, queue_names, sqlite_path
from .terminal import console, table

if TYPE_CHECKING:
    from ..postgres.admin import Admin
    from ..sql.finding import Finding

F = TypeVar("F")


@click.command()
@url_argument
@common()
@pass_session
def doctor(session: Session, where: str | None) -> int:
    """Look for what will hurt, and say what mends it.

    Reads the settings of the server and the figures of the queues, and changes nothing. Ends with 1 where something
    is serious.
    """
    session.given_url = where or session.given_url
    found = sorted(_findings(session), key=lambda each: not each.serious)
    serious = any(each.serious for each in found)
    if session.json:
        session.print_json(
            {"url": session.shown_url, "ok": not serious, "findings": [msgspec.structs.asdict(each) for each in found]}
        )
    elif found:
        _print(session, found)
    else:
        session.say(f"{session.shown_url}: nothing to mend")
    return NOT_SO if serious else 0


def _findings(session: Session) -> Iterator[Finding]:
    server, path = postgres(session.url), sqlite_path(session.url)
    if server is not None:
        yield from _of_server(server)
    elif path is not None:
        queue_names(session)  # says in words where there is no file, or another one
        yield from _of_file(session, str(path))


def _of_server(server: Admin) -> Iterator[Finding]:
    from ..postgres.doctor import checks

    server.refuse_old()
    yield from _all(checks(), server.look())


def _of_file(session: Session, path: str) -> Iterator[Finding]:
    from ..sql.finding import of_queue
    from ..sqlite.doctor import checks, look

    synchronous = str(split_url(session.url)[2].get("synchronous", "full")).lower()
    figures = look(path, synchronous)
    found = list(_all(checks(), figures))
    yield from found
    if any(each.check == "damage" for each in found):
        return  # nothing that is read there means anything
    for name in names_in(sqlite_path(session.url)):
        with connect(session.url, queue=name) as queue:
            yield from of_queue(name, queue.stats())


def _all(checks: Iterable[Callable[[F], Iterator[Finding]]], figures: F) -> Iterator[Finding]:
    for check in checks:
        yield from check(figures)


def _print(session: Session, found: list[Finding]) -> None:
    from rich.text import Text

    rows = [
        [
            Text("serious", "bold red") if each.serious else Text("note", "yellow"),
            Text(each.check),
            Text(f"{session.masked(each.what)}\n→ {session.masked(each.cure)}"),
        ]
        for each in found
    ]
    console().print(
        table(["", "check", "what, and what mends it"], rows, elastic="what, and what mends it", left=["check"])
    )
