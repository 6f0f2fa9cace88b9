"""The schedules that the command line's tests preview."""

from __future__ import annotations

import headrace
from headrace.job import Job
from headrace.pool import Balance, Hours, Pool, Schedule

schedule = Schedule(
    {"08:00-12:00": Hours(min=5, max=10), "Sat 22:00-06:00": Hours(min=0, max=2, wakeup_factor=0.6)},
    zone="Europe/Paris",
)


def handler(job: Job) -> None: ...


queue = headrace.connect("memory://")
pool = Pool(queue, handler, balance=Balance(min=3, max=6), schedule=schedule)
static = Pool(queue, handler, workers=4)
