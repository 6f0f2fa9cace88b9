"""All at once on PostgreSQL: workers are killed, the network cuts connections, the server restarts and crashes."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kit import Stage, Worker
from pg_proxy import Proxy
from pg_server import PrivateServer

SCALE = int(os.environ.get("HEADRACE_SOAK", "1"))
JOBS = 4_000 if SCALE == 1 else 10_000 * SCALE
"""With the other tests; and with ``make soak``."""
MIX = {
    "in loop return": 0.70,
    "in thread return": 0.20,
    "in process return": 0.01,
    "in loop raise once": 0.03,
    "in thread snooze once": 0.01,
    "in thread raise": 0.03,
    "in loop discard": 0.02,
}
DEADLY = ("raise", "discard")
WORKERS = 4


@contextmanager
def harm(stage: Stage, between: Proxy) -> Iterator[None]:
    """Meanwhile, every second, a worker is killed and another one started, and all connections are cut."""
    dice = random.Random(7)
    enough = threading.Event()

    def start() -> Worker:
        return stage.worker(workers=8, lease=3.0)

    def kill() -> None:
        while not enough.wait(1.0):
            victim = dice.randrange(WORKERS)
            workers[victim].kill()
            workers[victim] = start()
            between.cut()

    workers = [start() for _ in range(WORKERS)]
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        enough.set()
        killer.join()
    for worker in workers:
        worker.says("running")
        worker.signal(signal.SIGTERM)
    assert [worker.ends() for worker in workers] == [0] * WORKERS


def test_every_job_is_done_or_dead_whatever_befalls_workers_network_and_server(
    stage_on: Callable[[str], Stage],
    private_server: Callable[..., PrivateServer],
    proxy: Callable[[str], Proxy],
) -> None:
    """F01, F02, F05, F20, F21."""
    server = private_server()
    between = proxy(server.dsn())
    stage = stage_on(f"{server.dsn()}?capacity={2 * JOBS}&dead_capacity={JOBS}")
    stage.env["HEADRACE_URL"] = f"{between.dsn}?dead_capacity={JOBS}"
    ids: dict[str, list[str]] = {
        name: [f"{name} {number}" for number in range(round(JOBS * part))] for name, part in MIX.items()
    }
    deadly = {id for name, some in ids.items() if name.endswith(DEADLY) for id in some}
    total = sum(map(len, ids.values()))

    def ended(count: int) -> None:
        for milestone in range(500, count + 500, 500):  # each within the limit
            stage.until(lambda: over() >= min(milestone, count), f"{milestone} have ended")  # noqa: B023

    def over() -> int:
        stats = stage.queue.stats()
        return stats.acked + stats.dead_total

    with harm(stage, between):
        for name, some in ids.items():
            kind, act = " ".join(name.split()[:2]), " ".join(name.split()[2:])
            for first in range(0, len(some), 500):
                # A kill costs what runs an attempt: more kills than attempts would bury what is well.
                stage.enqueue(kind, act, *some[first : first + 500], max_attempts=2 if act == "raise" else 1_000)
            if name == "in thread return":
                ended(total // 3)
                server.restart("immediate")
        ended(total * 2 // 3)
        server.kill()
        server.start()
        ended(total)

    stats = stage.queue.stats()
    assert total == JOBS
    assert (stats.enqueued, stats.acked, stats.dead_total) == (total, total - len(deadly), len(deadly))
    assert (stats.ready, stats.delayed, stats.inflight, stats.unaccounted) == (0, 0, 0, 0)
    assert {job.id for job in stage.queue.dead(total)} == deadly
    assert {line.id for line in stage.lines("end")} >= {id for some in ids.values() for id in some} - deadly
