"""The command line: ``headrace``. Each command is thin: what it shows and does is the library's."""

from __future__ import annotations

from . import archive, check, completion, control, dead, doctor, enqueue, migrate, outside, schedule, stats, worker
from .root import root

__all__ = ["main", "root"]

for command in (
    worker.worker, enqueue.enqueue, stats.stats, dead.dead,
    control.pause, control.resume, control.cancel, check.check, completion.completion,
    schedule.schedule, migrate.migrate, doctor.doctor, archive.archive, outside.outside,
):  # fmt: skip
    root.add_command(command)


def main() -> None:
    """The entry point: runs the command of ``sys.argv`` and ends the process with its exit code."""
    root.main(prog_name="headrace")
