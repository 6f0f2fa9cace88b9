"""A server to measure on: a database for each case, systems in processes of their own, and pgbench."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import psycopg

from ._harness import Unmeasured
from ._pg_systems import OURS

SERVER = os.environ.get("HEADRACE_BENCH_PG", "postgresql://postgres@127.0.0.1:5432/test")
PATIENCE = 600
"""Seconds that a child may take."""
MATTERS = ("fsync", "synchronous_commit", "full_page_writes", "wal_sync_method", "shared_buffers", "autovacuum")
"""Settings without which no figure means anything."""

_numbers = count(1)


def server() -> str:
    """What is measured on, in one line."""
    try:
        with psycopg.connect(SERVER, connect_timeout=5) as connection:
            settings = [f"{name}={connection.execute(f'show {name}').fetchone()[0]}" for name in MATTERS]  # type: ignore[index]
            return f"PostgreSQL {connection.info.parameter_status('server_version')}, {', '.join(settings)}"
    except psycopg.OperationalError as error:
        raise Unmeasured(f"no PostgreSQL; name one by HEADRACE_BENCH_PG=postgresql://… ({error})") from None


@contextmanager
def database() -> Iterator[str]:
    """The URL of an empty one, dropped afterwards."""
    name = f"headrace_bench_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(SERVER, autocommit=True) as connection:
        connection.execute(f"create database {name}")
        try:
            yield urlsplit(SERVER)._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(f"drop database {name} with (force)")


def child(system: str, url: str, *steps: str) -> dict[str, Any]:
    """What each of the steps measured; see ``_pg_child.py``."""
    done = subprocess.run(command(system, url, *steps), capture_output=True, text=True, timeout=PATIENCE)
    return answer(system, done.stdout, done.stderr)


def command(system: str, url: str, *steps: str) -> list[str]:
    """HEADRACE_BENCH_PYTHON_OBAN names the Python that has Oban, where it is not this one; and so for the others."""
    python = os.environ.get(f"HEADRACE_BENCH_PYTHON_{system.upper()}", sys.executable)
    return [python, "-m", "benchmarks._pg_child", system, url, *steps]


def answer(system: str, stdout: str, stderr: str) -> dict[str, Any]:
    """A peer that fails is left out; our own failures end the run."""
    last = stdout.rpartition("\n{")[2] if "\n{" in stdout else stdout[1:]
    try:
        measured: dict[str, Any] = json.loads("{" + last)
    except ValueError:
        if system == OURS:
            raise RuntimeError(f"Headrace failed:\n{stderr}") from None
        raise Unmeasured(f"failed: {(stderr.strip() or stdout.strip()).splitlines()[-1:]}") from None
    if "missing" in measured:
        raise Unmeasured(measured["missing"])
    return measured


def pgbench(
    url: str,
    script: str,
    transactions: int,
    clients: int = 1,
    settings: Mapping[str, str] | None = None,
    **variables: int,
) -> float:
    """Seconds in which each of the clients ran the file as often, with its statements prepared, in sessions with these
    settings."""
    options = " ".join(f"-c {name}={value}" for name, value in (settings or {}).items())
    given = [f"--define={name}={value}" for name, value in variables.items()]
    often = ["-n", "-M", "prepared", "-c", str(clients), "-t", str(transactions)]
    try:
        done = subprocess.run(
            ["pgbench", *often, *given, "-f", script, url],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env={**os.environ, "PGOPTIONS": options},
        )
    except FileNotFoundError:
        raise Unmeasured("no pgbench here; it comes with the server: apt-get install postgresql") from None
    rate = re.search(r"^tps = ([0-9.]+)", done.stdout, re.MULTILINE)
    if done.returncode or rate is None:
        raise Unmeasured(f"pgbench failed: {done.stderr.strip()}")
    return transactions * clients / float(rate[1])
