"""One system, in a process of its own: ``python -m benchmarks._pg_child SYSTEM DSN STEP…``, where a step is install,
one=COUNT, bulk=COUNT, drain=COUNT, listen=COUNT or produce=COUNT.

Prints one JSON object with what each step measured, or with the reason why it could not.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import random
import sys
import time
from collections.abc import Callable
from typing import Any

from ._pg_systems import BULK, SYSTEMS, UVLOOP, Missing, Started, System

PAYLOAD = "x" * 100
WARM = 5
"""Calls before those that count: connections are opened, statements prepared."""
PATIENCE = 120.0
"""Seconds within which a worker has to do all of it."""


async def one(system: System, count: int) -> float:
    """Seconds for as many jobs, one after the other."""
    for _ in range(WARM):
        await system.one(PAYLOAD)
    start = time.perf_counter()
    for _ in range(count):
        await system.one(PAYLOAD)
    return time.perf_counter() - start


async def bulk(system: System, count: int) -> float:
    """Seconds for as many jobs, in calls of BULK."""
    start = time.perf_counter()
    for first in range(0, count, BULK):
        await system.bulk([PAYLOAD] * min(BULK, count - first))
    return time.perf_counter() - start


async def drain(system: System, count: int) -> float:
    """Seconds from the start of a worker to its end, all jobs run and settled."""
    start = time.perf_counter()
    await _work(system, count, lambda text: None)
    return time.perf_counter() - start


async def listen(system: System, count: int) -> dict[str, int]:
    """When each handler began, in nanoseconds of the steady clock that all processes share, by the job's text."""
    moments: dict[str, int] = {}

    def started(text: str) -> None:
        moments.setdefault(text, time.monotonic_ns())

    await _work(system, count + WARM, started, ready=True)
    return moments


async def produce(system: System, count: int) -> dict[str, int]:
    """When the call that enqueued each job returned, so that it was committed by then; the first ones are not told."""
    moments: dict[str, int] = {}
    for number in range(-WARM, count):
        await system.one(str(number))
        moments[str(number)] = time.monotonic_ns()
        await asyncio.sleep(random.uniform(0.03, 0.07))  # the worker idles again, out of step with any interval
    return {text: moment for text, moment in moments.items() if int(text) >= 0}


async def _work(system: System, count: int, started: Started, ready: bool = False) -> None:
    """Returns when ``count`` handlers have begun and the worker has ended."""
    loop, done, left = asyncio.get_running_loop(), asyncio.Event(), count

    def begun(text: str) -> None:
        nonlocal left
        started(text)
        left -= 1
        if not left:
            loop.call_soon_threadsafe(done.set)

    async with asyncio.timeout(PATIENCE), system.work(begun):
        if ready:
            await asyncio.sleep(1.5)  # it waits for jobs now
            print("ready", flush=True)
        await done.wait()


STEPS: dict[str, Callable[[System, int], Any]] = {
    "one": one,
    "bulk": bulk,
    "drain": drain,
    "listen": listen,
    "produce": produce,
    "install": lambda system, count: system.install(),
}


async def main(name: str, dsn: str, steps: list[str]) -> dict[str, Any]:
    logging.disable(logging.WARNING)  # what they say about each job is their user's choice
    measured: dict[str, Any] = {}
    async with SYSTEMS[name](dsn) as system:
        for step in steps:
            call, _, count = step.partition("=")
            measured[call] = await STEPS[call](system, int(count or 0))
    measured.pop("install", None)
    return measured


def run(name: str, dsn: str, *steps: str) -> dict[str, Any]:
    runner = asyncio.run
    if name in UVLOOP:
        try:
            runner = importlib.import_module("uvloop").run
        except ImportError:
            pass
    try:
        return runner(main(name, dsn, list(steps)))
    except Missing as reason:
        return {"missing": str(reason)}


if __name__ == "__main__":
    print(json.dumps(run(*sys.argv[1:])))
