"""What holds for a whole run of the program, whichever command it is: where the queues are, and how to speak."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click
import msgspec

from ..masking import mask, mask_url, secrets_of

F = TypeVar("F", bound=Callable[..., Any])


class Session(msgspec.Struct):
    """Filled by the options below, whether they stand before the command or behind it."""

    given_url: str | None = None
    json: bool = False
    debug: bool = False

    @property
    def url(self) -> str:
        """May hold a password: for ``connect``, not for people."""
        if url := self.given_url or os.environ.get("HEADRACE_URL"):
            return url
        from ..app import DEFAULT_URL  # brings all that workers need, and --help should be quick

        return DEFAULT_URL

    @property
    def shown_url(self) -> str:
        return mask_url(self.url)

    def masked(self, text: str) -> str:
        """Text without the secrets of this run, and without any that look like one."""
        return mask(text, secrets_of((self.given_url or "", os.environ.get("HEADRACE_URL", "")), os.environ))

    def print_json(self, value: object) -> None:
        """One value, one line, strict JSON: msgspec has no NaN to write."""
        click.echo(msgspec.json.encode(value))

    def say(self, text: str) -> None:
        """A line for people: to stderr where stdout carries JSON."""
        click.echo(self.masked(text), err=self.json)

    def warn(self, text: str) -> None:
        click.echo(f"headrace: {self.masked(text)}", err=True)


pass_session = click.make_pass_decorator(Session, ensure=True)


def _set(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value:  # the same option before the command stays where it is not given again
            setattr(context.ensure_object(Session), name, value)

    return keep


def common(json: bool = True) -> Callable[[F], F]:
    """The options that every command takes. ``json=False`` where ``--json`` would mean something else."""

    def add(function: F) -> F:
        url = click.option("--url", metavar="URL", expose_value=False, is_eager=True, callback=_set("given_url"),
                           help="Where the queues are; a password is better kept in HEADRACE_URL.")  # fmt: skip
        debug = click.option("--debug", is_flag=True, expose_value=False, is_eager=True, callback=_set("debug"),
                             help="Tracebacks and debug logs.")  # fmt: skip
        flag = click.option("--json", "as_json", is_flag=True, expose_value=False, callback=_set("json"),
                            help="Strict JSON on stdout.")  # fmt: skip
        function = url(debug(function))
        return flag(function) if json else function

    return add
