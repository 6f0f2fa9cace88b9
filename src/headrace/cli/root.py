"""The group of all commands, and the one place where errors become lines and exit codes."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from ..errors import HeadraceError
from .failure import CODES, DEFECT, NOT_SO, USAGE, Failure, code_of
from .session import Session, common


class Root(click.Group):
    """A group whose ``main`` ends the process with the codes in its help, and never with a traceback."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        session = extra.setdefault("obj", Session())
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        try:
            result = super().main(
                args, prog_name, complete_var, standalone_mode=False, windows_expand_args=windows_expand_args, **extra
            )
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(USAGE)
        except click.UsageError as error:
            command = error.ctx.command_path if error.ctx else "headrace"
            what = error.format_message().rstrip()
            stop = "" if what.endswith((".", "!", "?")) else "."
            self._end(session, f"{what}{stop} See: {command} --help", USAGE)
        except Failure as failure:
            self._end(session, failure.format_message(), failure.code)
        except click.Abort:
            self._end(session, "aborted; nothing more was done", NOT_SO)
        except HeadraceError as error:
            self._end(session, str(error), code_of(error))
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            hint = "" if session.debug else " (a defect; --debug shows where)"
            self._end(session, what + hint, DEFECT)
        sys.exit(result if isinstance(result, int) else 0)

    def _end(self, session: Session, message: str, code: int) -> None:
        if session.debug:
            click.echo(session.masked(traceback.format_exc()), err=True)
        session.warn(" ".join(message.split()))
        sys.exit(code)


def _version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        import platform
        import sqlite3
        from importlib.metadata import version

        click.echo(f"headrace {version('headrace')} (Python {platform.python_version()}, "
                   f"SQLite {sqlite3.sqlite_version})")  # fmt: skip
        context.exit()


@click.group(cls=Root, epilog=CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version.")
@common()
def root() -> None:
    """Headrace, a job queue you can trust.

    The queues are where --url says, else HEADRACE_URL, else sqlite:///headrace.db beside you.
    """
