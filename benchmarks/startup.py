"""What ``import headrace`` costs: all of it, and what is our own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

from ._harness import Bench, Case, Ratio, Scale

LINE = re.compile(r"import time:\s*(\d+) \|\s*(\d+) \|\s*(\S+)$", re.MULTILINE)


def benches(scale: Scale) -> Iterator[Bench]:
    names = ("import headrace: all", "import headrace: its own modules", "import asyncio: all")
    yield Bench(
        "Import, in a fresh process",
        "ms",
        [
            Case(names[0], lambda: imported("headrace", own=False)),
            Case(names[1], lambda: imported("headrace", own=True)),
            Case("of which msgspec", lambda: imported("headrace", own=True, of="msgspec")),
            Case(names[2], lambda: imported("asyncio", own=False)),
        ],
        [
            Ratio("headrace / asyncio, which it imports", [names[0]], [names[2]]),
            Ratio("own modules / all", [names[1]], [names[0]]),
        ],
    )


def imported(package: str, own: bool, of: str = "") -> float:
    """Milliseconds: of the whole import, or summed over the modules that belong to ``of`` (the package itself)."""
    command = [sys.executable, "-X", "importtime", "-c", f"import {package}"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    of = of or package
    total = 0
    for alone, cumulative, name in LINE.findall(told):
        if own and (name == of or name.startswith(f"{of}.")):
            total += int(alone)
        elif not own and name == package:
            total = int(cumulative)
    return total / 1000
