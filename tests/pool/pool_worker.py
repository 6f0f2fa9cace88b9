"""A worker as a program: ``python pool_worker.py URL KIND LEDGER WORKERS LEASE``; ends with 0 when it drained."""

from __future__ import annotations

import logging
import os
import sys

from pool_kit import async_handler, note, sync_handler

import headrace
from headrace.pool import Constant, Pool


def main() -> int:
    url, kind, ledger, workers, lease = sys.argv[1:]
    logging.basicConfig(level=logging.INFO)
    queue = headrace.connect(url, lease=float(lease), max_attempts=3)
    pool = Pool(
        queue,
        async_handler if kind == "async" else sync_handler,
        workers=int(workers),
        process=kind == "process",
        retry=Constant(base=0.05, jitter="none"),
    )
    note(ledger, f"up {os.getpid()} 0")
    summary = pool.run()
    queue.close()
    return 1 if summary.forced else 0


if __name__ == "__main__":
    sys.exit(main())
