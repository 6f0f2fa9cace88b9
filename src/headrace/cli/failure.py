"""How a command fails: one line on stderr, and an exit code that a script can tell apart."""

from __future__ import annotations

import click

from ..errors import ConfigError, DuplicateJob, HeadraceError, InvalidJob, QueueClosed, QueueFull, Unavailable

NOT_SO, USAGE, CONFIG, STORE, WORKER, DEFECT = 1, 2, 3, 4, 5, 70

CODES = """\b
Exit codes:
  0    done, or yes
  1    what was asked about is not so, or was not found
  2    the command line makes no sense, or the job was refused for what it holds
  3    bad configuration: the app, the URL, a setting
  4    the store cannot be reached, read or written
  5    a worker that could not go on; its last line says why
  70   a defect of Headrace itself
  128+N  a worker that ended by signal N before all that ran had finished
"""


class Failure(click.ClickException):
    """Ends the command with a line and a code."""

    def __init__(self, message: str, code: int = NOT_SO) -> None:
        super().__init__(message)
        self.code = code


def code_of(error: HeadraceError) -> int:
    """The exit code for an error of the library."""
    match error:
        case InvalidJob():
            return USAGE
        case Unavailable():
            return STORE
        case DuplicateJob() | QueueFull() | QueueClosed():
            return NOT_SO
        case _:
            return CONFIG if isinstance(error, ConfigError) else NOT_SO
