"""Making and upgrading the tables in PostgreSQL; SQLite's are upgraded by whoever opens the file."""

from __future__ import annotations

import click

from ..check import identifier
from ..errors import ConfigError
from .session import Session, common, pass_session
from .stores import place, postgres, schema_in

url_argument = click.argument("where", metavar="[URL]", required=False)


@click.command()
@url_argument
@click.option("--schema", metavar="NAME", help='Where the tables are; as in the URL, else "headrace".')
@click.option("--show", is_flag=True, help="Print the SQL, for psql, and change nothing.")
@common()
@pass_session
def migrate(session: Session, where: str | None, schema: str | None, show: bool) -> None:
    """Make the tables, or bring them up to date.

    All that is missing is applied in one transaction, once, however many do it at the same time. Workers of the
    release before go on meanwhile; where they cannot work with the new tables, they say so and end.
    """
    session.given_url = where or session.given_url
    if schema is not None:
        session.given_url = schema_in(session.url, identifier("schema", schema))
    server = postgres(session.url)
    if server is None:
        what = "makes and upgrades its tables by itself" if place(session.url) else "has no tables"
        raise ConfigError(f"url: {session.shown_url} {what}; migrate is for postgresql://")
    if show:
        script = server.script()
        if session.json:
            session.print_json({"schema": server.schema, "script": script})
        else:
            click.echo(script or f"-- {server}: nothing is missing")
        return
    done = server.migrate()
    if session.json:
        session.print_json({"schema": server.schema, "applied": done})
    else:
        session.say("\n".join([*(f"applied {name}" for name in done), f"{server}: up to date"]))
