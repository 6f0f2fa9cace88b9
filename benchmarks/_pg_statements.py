"""Our own claim and ack, run by pgbench: what the server can do with them, without anything in Python."""

from __future__ import annotations

import re
import tempfile

import psycopg

from headrace import sql
from headrace.postgres.connections import PLANNER

from ._harness import Unmeasured, per_job
from ._pg import child, database, pgbench
from ._pg_systems import OURS, WORKERS

LEASE = 30_000_000
ALL = "SELECT * FROM taken"
NEEDED = """SELECT array_agg(pk) AS jobs, min(fence) AS fence, min(~priority) AS rank, min(pk) AS place
FROM taken"""


def drained(count: int, clients: int) -> float:
    """Microseconds a job, in batches of as many as the pool has workers, in sessions set as our own are. The claim
    answers in one row with what the ack needs: payloads are not sent. Each claim begins where the client's last one
    found something."""
    transactions = count // WORKERS // clients
    with database() as url, tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        child(OURS, url, "install", f"bulk={count}")
        script.write(claim_and_ack(url))
        script.flush()
        seconds = pgbench(url, script.name, transactions, clients, PLANNER, rank=-(2**31), place=0)
    return per_job(transactions * WORKERS * clients, seconds)


def claim_and_ack(url: str) -> str:
    with psycopg.connect(url) as connection:
        row = connection.execute("select queue from headrace.queues where name = 'default'").fetchone()
    assert row is not None
    queries = sql.queries("postgres")
    values = {"now": "NULL", "before": "NULL", "queue": row[0], "lease": LEASE, "limit": WORKERS, "count": WORKERS}
    claim, ack = _filled(queries["take"], values).strip(), _filled(queries["ack_claim"], values)
    if not claim.endswith(ALL):
        raise Unmeasured(f"the claim does not end with {ALL!r} any more; this file has to learn how it does")
    return "\n".join([claim.removesuffix(ALL) + NEEDED, "\\gset", ack + ";", ""])


def _filled(statement: str, values: dict[str, object]) -> str:
    """With values for some of the parameters, and pgbench's variables for the others."""

    def value(found: re.Match[str]) -> str:
        return str(values.get(found[1], f":{found[1]}"))

    return re.sub(r"%\((\w+)\)s", value, statement.replace("{schema}", "headrace"))
