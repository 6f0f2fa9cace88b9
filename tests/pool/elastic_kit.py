"""For pools that change their size: one that is eager to, a gauge inside of its handlers, and virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from headrace.job import Job
from headrace.pool import Balance, Pool
from headrace.testing.clock import VirtualClock, run_virtual


def eager(low: int, high: int, **given: Any) -> Balance:
    """Wakes for every ready job that nobody can take, whatever the fullness."""
    settings: dict[str, Any] = {"heartbeat": 0.05, "sleep_interval": 0.2, **given}
    return Balance(min=low, max=high, wakeup_factor=0.0, sleep_factor=0.0, **settings)


class Gauge:
    """How many handlers run at once, seen from inside."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.starts: dict[str, int] = {}

    def __enter__(self) -> None:
        self.now += 1
        self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        self.now -= 1

    def handler(self, seconds: Callable[[Job], float]) -> Any:
        async def handle(given: Job) -> None:
            self.starts[given.id] = self.starts.get(given.id, 0) + 1
            with self:
                await asyncio.sleep(seconds(given))

        return handle


def in_virtual_time(pool: Pool, story: Callable[[], Any], clock: VirtualClock) -> None:
    async def main() -> None:
        working = asyncio.create_task(pool.run_async())
        await asyncio.sleep(0)
        await story()
        pool.stop()
        await working

    run_virtual(main(), clock)
