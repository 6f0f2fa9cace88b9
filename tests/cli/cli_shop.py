"""The app that the command line's tests run: in this process, and in workers of their own."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from headrace.app import App

app = App()
empty = App()
elsewhere = App("sqlite:///elsewhere.db")
number = 3


@dataclass
class Address:
    street: str
    house: int


@app.task
async def mail(
    to: str,
    copies: int = 1,
    urgent: bool = False,
    when: datetime | None = None,
    price: Decimal | None = None,
    address: Address | None = None,
    tags: list[str] | None = None,
    anything: Any = None,
) -> None: ...


@app.task(queue="reports", name="reports.daily")
def daily() -> None: ...


@app.task(name="sales.weekly")
def weekly_sales() -> None: ...


@app.task(name="stock.weekly")
def weekly_stock() -> None: ...


@app.task(max_attempts=1)
def fails(password: str) -> None:
    raise ValueError("it is \x1b]0;not\x07 [bold]possible[/bold]")


@app.task(queue="slow")
async def slow_async(folder: str) -> None:
    note(folder, "start")
    while not released(folder):  # noqa: ASYNC110  # it is another process that lets go, by making a file
        await asyncio.sleep(0.005)
    note(folder, "end")


@app.task(queue="slow")
def slow_thread(folder: str) -> None:
    hold(folder)


@app.task(queue="slow", process=True)
def slow_process(folder: str) -> None:
    hold(folder)


@app.task(queue="stuck", timeout=0.01, max_attempts=1)
def never_ends() -> None:
    threading.Event().wait()


@app.task(queue="slow")
async def blocks_the_loop(folder: str) -> None:
    hold(folder)


def hold(folder: str) -> None:
    """Run until the test lets go."""
    note(folder, "start")
    while not released(folder):
        time.sleep(0.005)
    note(folder, "end")


def note(folder: str, what: str) -> None:
    with open(Path(folder) / "ledger", "a") as ledger:
        ledger.write(f"{what} {os.getpid()}\n")


def released(folder: str) -> bool:
    return (Path(folder) / "go").exists()
