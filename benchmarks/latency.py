"""From ``enqueue`` to the first line of the handler, when the workers have nothing else to do."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from headrace import Job, Pool, connect
from headrace.queue import Queue

from ._harness import Bench, Case, Scale

PAUSE = 0.005
"""Seconds between two jobs: long enough for the workers to sleep again."""


def benches(scale: Scale) -> Iterator[Bench]:
    count = scale.count(500)
    ways: dict[str, Callable[[int], list[float]]] = {
        "memory": in_memory,
        "SQLite, same process": in_file,
        "SQLite, another process": other_process,
    }
    measured: dict[str, list[float]] = {}

    def p50(way: str) -> float:
        measured[way] = sorted(ways[way](count))
        return measured[way][len(measured[way]) // 2]

    def p99(way: str) -> float:
        return measured[way][len(measured[way]) * 99 // 100]

    cases = []
    for way in ways:  # the p99 of the run that the p50 before it measured
        cases += [Case(f"{way}: p50", partial(p50, way)), Case(f"{way}: p99", partial(p99, way))]
    yield Bench("Latency, enqueue begins to handler begins, 8 idle workers, synchronous=normal", "ms", cases)


def in_memory(count: int) -> list[float]:
    with connect("memory://") as jobs:
        return _same_process(jobs, count)


def in_file(count: int) -> list[float]:
    with tempfile.TemporaryDirectory() as folder, connect(_url(folder)) as jobs:
        return _same_process(jobs, count)


def _same_process(jobs: Queue, count: int) -> list[float]:
    seen: list[float] = []
    with working(jobs, seen.append):
        produce(jobs, count)
        _until(lambda: len(seen) == count)
    return seen


def other_process(count: int) -> list[float]:
    with tempfile.TemporaryDirectory() as folder, connect(_url(folder)) as jobs:
        command = [sys.executable, "-m", "benchmarks.latency", _url(folder), str(count)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            child.stdout.readline()  # it waits for jobs now
            produce(jobs, count)
            return [float(line) for line in child.stdout]


def produce(jobs: Queue, count: int) -> None:
    for _ in range(count):
        time.sleep(PAUSE)
        jobs.enqueue(Job(str(time.monotonic_ns()).encode()))


@contextmanager
def working(jobs: Queue, took: Callable[[float], object]) -> Iterator[None]:
    """A pool in a thread; ``took`` gets the milliseconds of each job."""

    async def handle(job: Job) -> None:
        took((time.monotonic_ns() - int(job.payload)) / 1e6)

    pool = Pool(jobs, handle, 8)
    thread = threading.Thread(target=pool.run)
    thread.start()
    _until(lambda: pool.health().phase == "running")
    time.sleep(0.1)  # it waits for jobs now
    yield
    pool.stop()
    thread.join()


def _until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 30
    while not condition():
        if time.monotonic() > limit:
            raise TimeoutError("the pool did not come so far within 30 s")
        time.sleep(0.01)


def _url(folder: str) -> str:
    return f"sqlite:///{folder}/jobs.db?synchronous=normal"


def child(url: str, count: int) -> None:
    seen: list[float] = []
    with connect(url) as jobs, working(jobs, seen.append):
        print("ready", flush=True)
        _until(lambda: len(seen) == count)
    for each in seen:
        print(each)


if __name__ == "__main__":
    child(sys.argv[1], int(sys.argv[2]))
