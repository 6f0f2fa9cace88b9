"""PostgreSQL: from a commit in one process to the handler's first line in another, which has nothing else to do."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial

from ._harness import Bench, Case, Ratio, Scale, Unmeasured
from ._pg import PATIENCE, answer, child, command, database, server
from ._pg_systems import OURS, SYSTEMS

PEERS = [system for system in SYSTEMS if system != OURS]


def benches(scale: Scale) -> Iterator[Bench]:
    note = server()
    count = scale.count(200)
    measured: dict[str, list[float]] = {}

    def p50(system: str) -> float:
        measured[system] = sorted(latencies(system, count))
        return measured[system][len(measured[system]) // 2]

    def p99(system: str) -> float:
        if system not in measured:
            raise Unmeasured("as its p50 was")
        return measured[system][len(measured[system]) * 99 // 100]

    cases = []
    for system in SYSTEMS:  # the p99 of the run that the p50 before it measured
        cases += [Case(f"{system}: p50", partial(p50, system)), Case(f"{system}: p99", partial(p99, system))]
    yield Bench(
        "PostgreSQL: latency, commit to the handler's first line, idle worker in another process",
        "ms",
        cases,
        [
            Ratio(f"{p}: ours / best peer", [f"{OURS}: {p}"], [f"{peer}: {p}" for peer in PEERS], at_most=1)
            for p in ("p50", "p99")
        ],
        note,
    )


def latencies(system: str, count: int) -> list[float]:
    """Milliseconds of each job."""
    with database() as url:
        child(system, url, "install")
        listener = command(system, url, f"listen={count}")
        with subprocess.Popen(listener, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as worker:
            assert worker.stdout is not None
            worker.stdout.readline()  # "ready", or it failed
            commits = child(system, url, f"produce={count}")["produce"] if worker.poll() is None else {}
            starts = answer(system, *worker.communicate(timeout=PATIENCE))["listen"]
    return [(starts[text] - commits[text]) / 1e6 for text in commits]
