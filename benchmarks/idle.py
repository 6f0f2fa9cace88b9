"""What workers cost while there is nothing to do: processor time, in per cent of one core."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from headrace import App

from ._harness import Bench, Case, Scale, Unmeasured

SETTLING = 2.0
"""Seconds for the start, which are not counted."""

app = App()


@app.task
async def nothing() -> None:
    pass


def benches(scale: Scale) -> Iterator[Bench]:
    seconds = 3.0 if scale.quick else 10.0
    worker = [str(Path(sys.executable).with_name("headrace")), "worker", "benchmarks.idle:app"]
    pool = [sys.executable, "-m", "benchmarks.idle"]
    yield Bench(
        f"Idle for {seconds:g} s, 8 workers",
        "% of a core",
        [
            Case("a pool on memory", lambda: used(pool, "memory://", seconds)),
            Case("a pool on SQLite", lambda: used(pool, "sqlite:///jobs.db", seconds)),
            Case("headrace worker on SQLite", lambda: used(worker, "sqlite:///jobs.db", seconds)),
        ],
    )


def used(command: list[str], url: str, seconds: float) -> float:
    """Starts it in an empty folder; what it uses after the first moments."""
    if not Path(command[0]).exists():
        raise Unmeasured(f"{command[0]} is not installed")
    here = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HEADRACE_URL": url, "PYTHONPATH": here}
        child = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
        time.sleep(SETTLING)
        if child.poll() is not None:
            _, told = child.communicate()
            raise Unmeasured(f"it ended with {child.returncode}: {told.strip()[-300:]}")
        start, before = time.monotonic(), _ticks(child.pid)
        time.sleep(seconds)
        spent = _ticks(child.pid) - before
        share = spent / os.sysconf("SC_CLK_TCK") / (time.monotonic() - start)
        child.terminate()
        child.communicate()
        return share * 100


def _ticks(pid: int) -> int:
    """Processor time so far, user and system, in clock ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


if __name__ == "__main__":
    from benchmarks.idle import app as same

    same.pool().run()
