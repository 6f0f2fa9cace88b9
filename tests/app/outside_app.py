"""An app that keeps large arguments outside, for workers and producers in processes of their own. As a program it
enqueues one call, which waits for room in a full queue."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from headrace import App

app = App(outside=f"file://{os.environ['OUTSIDE']}", outside_above=100, capacity=10, overflow="block")


def note(path: str, text: str) -> None:
    Path(path).write_text(hashlib.sha256(text.encode()).hexdigest())


@app.task
async def on_the_loop(path: str, text: str) -> None:
    note(path, text)


@app.task
def in_a_thread(path: str, text: str) -> None:
    note(path, text)


@app.task(process=True)
def in_a_process(path: str, text: str) -> None:
    note(path, text)


if __name__ == "__main__":
    in_a_thread.enqueue("nowhere", "x" * 1_000)
