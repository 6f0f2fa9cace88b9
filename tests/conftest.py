"""Databases, servers of their own, and what stands between: for the tests on PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from pg_bouncer import Bouncer
from pg_databases import Databases
from pg_proxy import Proxy
from pg_server import PrivateServer


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    made = Databases(os.environ.get("HEADRACE_TEST_PG", ""))
    yield made
    made.close()


@pytest.fixture
def dsn(databases: Databases) -> Iterator[str]:
    """The URL of an empty database that is this test's alone."""
    taken = databases.take()
    yield taken
    databases.give_back(taken)


@pytest.fixture
def private_server() -> Iterator[Callable[..., PrivateServer]]:
    """Starts a server of the test's own, see PrivateServer."""
    with ExitStack() as stack:

        def make(*args: Any, **settings: Any) -> PrivateServer:
            server = PrivateServer(*args, **settings)
            stack.callback(server.close)
            return server

        yield make


@pytest.fixture
def proxy() -> Iterator[Callable[[str], Proxy]]:
    """Puts a network that can fail in front of the server of a DSN."""
    with ExitStack() as stack:

        def make(target: str) -> Proxy:
            between = Proxy(target)
            stack.callback(between.close)
            return between

        yield make


@pytest.fixture
def bouncer() -> Iterator[Callable[..., Bouncer]]:
    """Puts a PgBouncer in transaction mode in front of a database."""
    with ExitStack() as stack:

        def make(target: str, size: int = 2) -> Bouncer:
            between = Bouncer(target, size)
            stack.callback(between.close)
            return between

        yield make
