"""Run as a program: fill the disk, or reach the limit of the file's size, and go on when there is room again.

``full_disk.py FILE ballast``: the file system is small, and removing the file ``ballast`` beside FILE makes room.
``full_disk.py FILE limit``: the process itself limits the size of its files, and lifts the limit.
``full_disk.py FILE open``: only open it, and say how that failed.
Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

from sqlite_files import drain, lease, open_at

from headrace.errors import HeadraceError, StorageFull
from headrace.job import Job

LIMIT = 700_000


def _limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def fill(path: Path, by_limit: bool) -> dict[str, object]:
    ballast = path.with_name("ballast")
    if by_limit:
        _limit(LIMIT)
    else:
        space = os.statvfs(path.parent)
        ballast.write_bytes(b"b" * (space.f_bavail * space.f_frsize // 2))
    accepted, refused = [], []
    with open_at(path, lease=3600.0, capacity=100_000) as queue:
        queue.enqueue(Job(id="running"))
        running = lease(queue)
        for number in range(5_000):
            try:
                queue.enqueue(Job(b"x" * 2000, f"job{number}"))
                accepted.append(f"job{number}")
            except StorageFull as error:
                refused.append(str(error))
                if len(refused) == 5:
                    break
        acked = 1
        try:
            queue.ack(running)  # may find room, or not; then it is for later
        except StorageFull:
            acked = 0
        looked = queue.stats().ready
        if by_limit:
            _limit(resource.RLIM_INFINITY)
        else:
            ballast.unlink()
        queue.enqueue(Job(b"x" * 2000, "afterwards"))
        if not acked:
            queue.ack(running)
        done = [job.id for job in drain(queue)]
        unaccounted = queue.stats().unaccounted
    with open_at(path) as again:
        left = again.stats().size
    return {
        "accepted": [*accepted, "afterwards"],
        "refused": refused,
        "looked": looked,
        "done": done,
        "left": left,
        "unaccounted": unaccounted,
    }


def main(path: Path, what: str) -> dict[str, object]:
    if what != "open":
        return fill(path, what == "limit")
    try:
        with open_at(path) as queue:
            queue.enqueue(Job())
    except HeadraceError as error:
        return {"kind": type(error).__name__, "error": str(error)}
    return {"kind": None, "error": ""}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))
