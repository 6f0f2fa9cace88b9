"""The app: one task, one queue. Start a worker by hand with ``headrace worker examples.index.app:app``."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from sqlite3 import Connection

from headrace import App, Discard
from headrace.pool import Context

from . import index
from .count import count

WORK = Path(os.environ.get("INDEX_WORK", "index-work"))

app = App(os.environ.get("HEADRACE_URL", f"sqlite:///{WORK / 'jobs.db'}"), capacity=1_000_000, lease=3.0)


@cache
def _index() -> Connection:
    """One connection for each process that handlers run in, kept open between jobs."""
    return index.connect(WORK / "index.db")


@app.task(queue="index", max_attempts=4, timeout=60, process=True)
def index_file(context: Context, path: str) -> None:
    """Count what a file holds and write it down. What is no Python can never succeed: it is discarded, and
    the parser's reason stands in the dead letter."""
    try:
        figures = count(Path(path).read_bytes())
    except (SyntaxError, ValueError, RecursionError) as error:
        raise Discard(f"{type(error).__name__}: {error}") from error
    index.write(_index(), path, context.job.fence, figures)
