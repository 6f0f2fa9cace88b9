"""The app that the workers of the scenarios serve: handlers of each kind that do as they are told.

Each writes to a ledger, one line a step: the only witness of what really ran, and which process ran it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from pathlib import Path

import msgspec

from headrace import App, Discard, Snooze
from headrace.pool import Constant, Context, Jitter

app = App()
RETRY = Constant(base=0.05, jitter=Jitter.NONE)


class Line(msgspec.Struct, frozen=True):
    """One step of a handler."""

    event: str
    id: str
    attempt: int
    fence: int
    last_error: str | None
    pid: int
    at: float
    """By the monotonic clock, which all processes share."""


@app.task(retry=RETRY)
async def in_loop(context: Context, act: str) -> None:
    await perform(context, act)


@app.task(retry=RETRY)
def in_thread(context: Context, act: str) -> None:
    perform_blocking(context, act)


@app.task(retry=RETRY, process=True)
def in_process(context: Context, act: str) -> None:
    perform_blocking(context, act)


@app.task(retry=RETRY, timeout=0.3)
async def limited_in_loop(context: Context, act: str) -> None:
    await perform(context, act)


@app.task(retry=RETRY, timeout=0.3)
def limited_in_thread(context: Context, act: str) -> None:
    perform_blocking(context, act)


@app.task(retry=RETRY, timeout=0.3, process=True)
def limited_in_process(context: Context, act: str) -> None:
    perform_blocking(context, act)


async def perform(context: Context, act: str) -> None:
    note(context, "start")
    name, _, rest = act.partition(":")
    match name:
        case "hold":
            while not let_go():  # noqa: ASYNC110  # it is another process that lets go, by making a file
                await asyncio.sleep(0.005)
        case "sleep":
            await asyncio.sleep(float(rest))
        case "until told":
            try:
                await asyncio.sleep(60)
            finally:
                note(context, "told")
        case "stubborn":
            end = time.monotonic() + float(rest)
            while time.monotonic() < end:
                try:
                    await asyncio.sleep(0.05)
                except asyncio.CancelledError:
                    note(context, "told")
        case _:
            do(context, name, rest)
    note(context, "end")


def perform_blocking(context: Context, act: str) -> None:
    note(context, "start")
    name, _, rest = act.partition(":")
    match name:
        case "hold":
            while not let_go():
                time.sleep(0.005)
        case "until told":
            context.wait_cancelled(60)
            note(context, "told")
            context.raise_if_cancelled()
        case "stubborn":
            end = time.monotonic() + float(rest)
            while time.monotonic() < end:
                try:
                    time.sleep(0.05)
                except Exception:
                    note(context, "told")
        case "deadlock":
            lock = threading.Lock()
            lock.acquire()
            lock.acquire(timeout=float(rest))
        case _:
            do(context, name, rest)
    note(context, "end")


def do(context: Context, name: str, rest: str) -> None:
    """What is the same for every kind of handler."""
    match name:
        case "return":
            pass
        case "sleep" | "block":
            time.sleep(float(rest))
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "_exit":
            os._exit(0)
        case "exit":
            sys.exit(int(rest))
        case "interrupt":
            raise KeyboardInterrupt
        case "raise":
            raise ValueError("as it was told")
        case "raise once":
            if context.job.attempt == 1:
                raise ValueError("as it was told")
        case "snooze once":
            if not (ledger().parent / f"snoozed-{context.job.id}").exists():
                (ledger().parent / f"snoozed-{context.job.id}").touch()
                raise Snooze(0.05)
        case "discard":
            raise Discard("as it was told")
        case "follow up":
            in_loop.options(id=f"{context.job.id}-next").enqueue("return")
        case "fork":
            fork(context)
        case _:
            raise AssertionError(f"nobody knows how to {name}")


def fork(context: Context) -> None:
    """Enqueue from a forked child, through the queue that its parent uses too."""
    app.queue()
    child = os.fork()
    if child == 0:
        try:
            in_loop.options(id=f"{context.job.id}-next").enqueue("return")
        except BaseException as error:
            note(context, f"failed:{type(error).__name__}")
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def note(context: Context, event: str) -> None:
    """One whole line at once, whoever else writes."""
    job = context.job
    line = Line(event, job.id, job.attempt, job.fence, job.last_error, os.getpid(), time.monotonic())
    file = os.open(ledger(), os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    try:
        os.write(file, msgspec.json.encode(line) + b"\n")
    finally:
        os.close(file)


def ledger() -> Path:
    return Path(os.environ["LEDGER"])


def let_go() -> bool:
    return (ledger().parent / "go").exists()
