"""Handlers that settle their jobs in their own transactions, for processes of their own."""

from __future__ import annotations

import sys

import psycopg

from headrace import Job, Pool, connect


def pay(job: Job) -> None:
    """In a child of a pool."""
    dsn, fate = job.payload.decode().split()
    with connect(dsn) as queue, psycopg.connect(dsn) as connection:
        queue.within(connection).ack(job)
        if fate == "rollback" and job.attempt == 1:
            connection.rollback()


def work(dsn: str) -> None:
    """A worker that may be killed at any point."""
    with connect(dsn, lease=1.0, poll=0.1) as queue:

        def handler(job: Job) -> None:
            with psycopg.connect(dsn) as connection:
                connection.execute("INSERT INTO effects VALUES (%s)", (job.id,))
                queue.within(connection).ack(job)

        Pool(queue, handler, workers=4).run()


if __name__ == "__main__":
    work(sys.argv[1])
