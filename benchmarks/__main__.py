"""``python -m benchmarks [name…] [--quick]``: measure, print, write nothing."""

from __future__ import annotations

import argparse
import importlib
import platform
import sqlite3
import sys
from datetime import date

from rich.console import Console

from ._harness import Scale, Unmeasured, measure, show

NAMES = (
    *("memory", "waiters", "sqlite", "depth", "pool", "latency", "memory_use", "startup", "idle"),
    *("postgres", "postgres_latency", "postgres_aged"),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"which ones: {', '.join(NAMES)}; else all")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, two rounds: does it all run?")
    parser.add_argument("--rounds", type=int, help="how often each is measured; else 5, or 2 with --quick")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in NAMES]
    if unknown:
        parser.error(f"{unknown[0]!r} is none of {', '.join(NAMES)}")
    scale = Scale(given.quick, given.rounds or (2 if given.quick else 5))
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(
        f"{date.today()}, {platform.python_implementation()} {platform.python_version()}, "  # noqa: DTZ011 # a heading
        f"SQLite {sqlite3.sqlite_version}, {platform.system()} {platform.machine()}, {scale.rounds} rounds\n",
        highlight=False,
    )
    missed = []
    for name in given.names or NAMES:
        try:
            for bench in importlib.import_module(f"benchmarks.{name}").benches(scale):
                missed += show(bench, measure(bench, scale.rounds, console), console)
        except Unmeasured as reason:
            console.print(f"[yellow]left out[/] {name}: {reason}\n", highlight=False)
    for line in missed:
        console.print(f"[red]missed[/] {line}", highlight=False)


if __name__ == "__main__":
    main()
