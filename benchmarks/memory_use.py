"""Bytes for a job that waits in memory, and what is given back after a peak. Each figure in a process of its own."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from headrace import Job, connect

from ._drain import fill
from ._harness import Bench, Case, Ratio, Scale

PAYLOAD = 100
WAYS = ("traced, full", "traced, emptied", "resident, full", "resident, emptied")


def benches(scale: Scale) -> Iterator[Bench]:
    count = scale.count(100_000)
    names = [f"Headrace: {way}" for way in WAYS]
    yield Bench(
        f"Memory for each of {count:,} jobs with {PAYLOAD} bytes of payload and an id of 36 characters",
        "bytes a job",
        [
            *[Case(name, partial(_child, way, count)) for name, way in zip(names, WAYS, strict=True)],
            Case("the two texts and a tuple, traced", partial(_child, "plain", count)),
            Case("the bar: 300 and the payload", lambda: 300.0 + sys.getsizeof(bytes(PAYLOAD))),
        ],
        [
            Ratio(
                "a waiting job / 300 bytes beside its payload", [names[0]], ["the bar: 300 and the payload"], at_most=1
            ),
            Ratio("a waiting job / what it holds", [names[0]], ["the two texts and a tuple, traced"]),
            Ratio("left after the peak, traced", [names[1]], [names[0]], at_most=0.05),
            Ratio("left after the peak, resident", [names[3]], [names[2]]),
        ],
    )


def _child(way: str, count: int) -> float:
    command = [sys.executable, "-m", "benchmarks.memory_use", way, str(count)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def grown(way: str, count: int) -> float:
    """Bytes that the process has grown by, for each job."""
    kind, _, when = way.partition(", ")
    with connect("memory://", capacity=count + 1_000) as jobs:
        jobs.enqueue_many([_job(0)])  # whatever is made once is made now
        jobs.ack_many(jobs.dequeue_many(1, 0))
        if kind != "resident":
            tracemalloc.start()
        gc.collect()
        before = _size(kind)
        held = []
        if kind == "plain":
            held = [(job.id, job.payload) for job in map(_job, range(count))]
        else:
            fill(jobs, count, _job)
        if when == "emptied":
            while taken := jobs.dequeue_many(1_000, 0):
                jobs.ack_many(taken)
            del taken
        gc.collect()
        size = (_size(kind) - before) / count
        del held
        return size


def _size(kind: str) -> int:
    if kind == "resident":
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return tracemalloc.get_traced_memory()[0]


def _job(number: int) -> Job:
    return Job(b"%0*d" % (PAYLOAD, number))


if __name__ == "__main__":
    print(grown(sys.argv[1], int(sys.argv[2])))
