"""``make demo``: index thousands of real files, kill a worker half-way, lose nothing, and prove it.

1. one job per Python file of this interpreter goes into a queue, an SQLite file;
2. a worker starts; half-way it is killed with ``kill -9``, and another one takes over;
3. the totals are compared with those of a plain walk over the same files. Equal, or the demo fails.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from headrace import Job, Queue

from . import index
from .count import COUNTED, count, python_files

console = Console()
BATCH = 500


def main() -> int:
    options = _options()
    work: Path = options.work
    work.mkdir(parents=True, exist_ok=True)
    for name in ("jobs.db", "index.db"):  # of an earlier run
        for path in work.glob(f"{name}*"):
            path.unlink()
    os.environ["INDEX_WORK"] = str(work)
    os.environ.pop("HEADRACE_URL", None)
    from .app import app, index_file

    files = [str(path) for path in python_files()][: options.files]
    console.print(f"[bold]{len(files):,}[/] Python files under {sys.prefix} and its standard library")
    queue = app.queue("index")
    with _bar() as bar:
        _enqueue(bar, queue, [index_file.job(path) for path in files])
        killed = _work(bar, queue, len(files), options.workers)
        expected, broken = _walk(bar, files)
    return _compare(queue, work, expected, broken, killed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make demo", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--files", type=_whole(100), default=None, help="only the first so many files, 100 or more")
    parser.add_argument(
        "--workers", type=_whole(1), default=os.cpu_count() or 2, help="handlers at once (default: a core each)"
    )
    parser.add_argument("--work", type=Path, default=Path("index-work"), help="folder for the queue and the index")
    return parser.parse_args()


def _whole(least: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} on")
        return int(text)

    return whole


def _bar() -> Progress:
    columns = (TextColumn("{task.description:<34}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console)


def _enqueue(bar: Progress, queue: Queue, jobs: list[Job]) -> None:
    task = bar.add_task("enqueue", total=len(jobs))
    for start in range(0, len(jobs), BATCH):
        queue.enqueue_many(jobs[start : start + BATCH])
        bar.advance(task, len(jobs[start : start + BATCH]))


def _work(bar: Progress, queue: Queue, total: int, workers: int) -> int:
    """Start a worker, kill it half-way, start another, wait for the end. How many jobs it had in hand."""
    task = bar.add_task("index (worker 1)", total=total)
    killed, number = 0, 1
    worker = _start(workers)
    try:
        while (stats := queue.stats()).size:
            done = stats.acked + stats.dead
            bar.update(task, completed=done)
            if worker.poll() is not None:
                raise SystemExit(f"the worker ended by itself with code {worker.returncode}")
            if not killed and done >= total // 2 and stats.inflight:
                os.kill(worker.pid, signal.SIGKILL)
                worker.wait()
                killed = queue.stats().inflight  # none, if it finished in this very moment: then the next one
                bar.console.print(f"[red]kill -9[/] worker {number} (pid {worker.pid}), jobs in hand: {killed}")
                number += 1
                bar.update(task, description=f"index (worker {number})")
                worker = _start(workers)
            time.sleep(0.05)
        bar.update(task, completed=total)
        worker.send_signal(signal.SIGTERM)
        if worker.wait(30):
            raise SystemExit(f"the worker did not stop cleanly: code {worker.returncode}")
    finally:
        worker.kill()
        worker.wait()
    return killed


def _start(workers: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "headrace", "worker", "examples.index.app:app", "--workers", str(workers)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _walk(bar: Progress, files: Iterable[str]) -> tuple[dict[str, int], set[str]]:
    """The same figures without any queue, one file after the other."""
    sums = dict.fromkeys(("files", *COUNTED), 0)
    broken = set()
    for path in bar.track(list(files), description="check (a plain walk)"):
        try:
            figures = count(Path(path).read_bytes())
        except (SyntaxError, ValueError, RecursionError):
            broken.add(path)
            continue
        sums["files"] += 1
        for name in COUNTED:
            sums[name] += figures[name]
    return sums, broken


def _compare(queue: Queue, work: Path, expected: dict[str, int], broken: set[str], killed: int) -> int:
    with closing(index.connect(work / "index.db")) as connection:
        found = index.totals(connection)
    letters = queue.dead(limit=10_000)
    buried = {json.loads(letter.payload)["args"]["path"] for letter in letters}
    stats = queue.stats()
    table = Table("", "by the workers", "by a plain walk", "", title="Totals", title_justify="left")
    rows = [(name, found[name], expected[name]) for name in found]
    rows.append(("broken files", len(buried), len(broken)))
    rows.append(("jobs unaccounted for", stats.unaccounted, 0))
    rows.append(("jobs left over", stats.size, 0))
    for name, by_workers, by_walk in rows:
        table.add_row(name, f"{by_workers:,}", f"{by_walk:,}", "[green]=" if by_workers == by_walk else "[red]differs")
    console.print(table)
    for letter in letters[:3]:
        path = json.loads(letter.payload)["args"]["path"]
        console.print(f"dead letter {Path(path).name}: {letter.last_error}", highlight=False)
    if len(letters) > 3:
        console.print(f"… and {len(letters) - 3} more: headrace dead list --url sqlite:///{work / 'jobs.db'}")
    equal = all(a == b for _, a, b in rows) and buried == broken and stats.expired_leases >= killed
    console.print(
        f"{stats.enqueued:,} enqueued, {stats.acked:,} done, {stats.dead:,} dead letters; "
        f"what the killed worker had in hand and was done again: {stats.expired_leases}"
    )
    if not killed:
        console.print("[bold red]no worker could be killed at work: too few files")
        return 1
    console.print("[bold green]equal: nothing was lost" if equal else "[bold red]NOT equal")
    return 0 if equal else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")
