"""The servers and networks that the tests on PostgreSQL break at will do break, and get well again."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pg_binaries import Binaries, choose, servers, wheels
from pg_bouncer import Bouncer
from pg_databases import PREFIX, Databases, resolve
from pg_place import Place, free_port, working_in
from pg_proxy import Proxy
from pg_server import PrivateServer, may_mount
from pg_url import url_of
from psycopg.conninfo import conninfo_to_dict

from headrace.testing.clock import wait_until

Connection = psycopg.Connection[tuple[Any, ...]]
StartServer = Callable[..., PrivateServer]
StartProxy = Callable[[str], Proxy]


def connect(dsn: str) -> Connection:
    return psycopg.connect(dsn, autocommit=True, connect_timeout=5)


def one(connection: Connection, query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def answers(dsn: str) -> bool:
    try:
        with connect(dsn) as connection:
            return bool(one(connection, "SELECT 1") == 1)
    except psycopg.OperationalError:
        return False


def silent(port: int) -> bool:
    """Whether somebody takes a connection there and says nothing to what a server answers at once."""
    with socket.create_connection(("127.0.0.1", port), 5) as client:
        client.sendall(struct.pack("!ii", 8, 80877103))  # SSLRequest
        client.settimeout(0.2)
        try:
            return client.recv(1) == b"?"
        except TimeoutError:
            return True


class Asked:
    """A query under way in a thread; ``error`` when it has failed."""

    def __init__(self, connection: Connection, query: str) -> None:
        self.connection, self.query = connection, query
        self.answer: Any = None
        self.error: psycopg.Error | None = None
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        try:
            self.answer = one(self.connection, self.query)
        except psycopg.Error as error:
            self.error = error

    def waits(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> Asked:
        self._thread.join(20)
        if self.waits():
            with socket.socket(fileno=os.dup(self.connection.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)  # else whoever closes the connection would wait for the thread
            raise AssertionError("no answer within 20 s")
        return self


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateServer]:
    made = PrivateServer()
    yield made
    made.close()


# --- databases --------------------------------------------------------------------------------------------------


def _empty(dsn: str) -> bool:
    with connect(dsn) as connection:
        schemas = "SELECT string_agg(nspname, ' ' ORDER BY nspname) FROM pg_namespace WHERE nspname !~ '^pg_'"
        relations = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        found = one(connection, schemas), one(connection, relations)
    return bool(found == ("information_schema public", 0))


def test_a_database_is_empty_again_when_it_comes_back(databases: Databases) -> None:
    taken = databases.take()
    left_open = connect(taken)
    left_open.execute("CREATE SCHEMA headrace CREATE TABLE job (id int PRIMARY KEY)")
    left_open.execute("CREATE TABLE theirs (id int); CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    left_open.execute("SELECT pg_advisory_lock(1); BEGIN; LOCK TABLE headrace.job; INSERT INTO theirs VALUES (1)")
    with connect(taken) as owner:
        name = conninfo_to_dict(taken)["dbname"]
        owner.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
    databases.give_back(taken)
    with pytest.raises(psycopg.OperationalError):
        left_open.execute("SELECT 1")
    left_open.close()
    again = databases.take()
    assert again == taken
    assert _empty(again)
    with connect(again) as owner:
        assert one(owner, "SELECT pg_try_advisory_lock(1)")
        owner.execute("CREATE TABLE mine (id int)")
    databases.give_back(again)


def test_two_tests_at_once_get_two_databases(databases: Databases, dsn: str) -> None:
    other = databases.take()
    assert other != dsn
    assert _empty(other)
    assert _empty(dsn)
    databases.give_back(other)


def test_databases_of_dead_runs_are_swept_and_those_of_living_ones_stay(server: PrivateServer) -> None:
    living = Databases(server.dsn())
    names = {conninfo_to_dict(living.take())["dbname"]}
    with server.connect() as owner:
        owner.execute(f"CREATE DATABASE {PREFIX}1_dead_1 TEMPLATE template0".encode())
        there = "SELECT datname FROM pg_database WHERE starts_with(datname, %s)"
        other = Databases(server.dsn())
        names.add(conninfo_to_dict(other.take())["dbname"])
        assert {name for (name,) in owner.execute(there, [PREFIX])} == names
        other.close()
        living.close()
        assert owner.execute(there, [PREFIX]).fetchall() == []


# --- which server -----------------------------------------------------------------------------------------------


def test_where_a_server_is_named_no_other_is_taken() -> None:
    nobody = f"postgresql://postgres@127.0.0.1:{free_port()}/postgres"
    with ExitStack() as stack, pytest.raises(LookupError, match="HEADRACE_TEST_PG: no PostgreSQL 13"):
        resolve(nobody, stack)


def test_a_version_that_is_not_here_is_told_with_those_that_are() -> None:
    with pytest.raises(LookupError, match=rf"PostgreSQL 9 is wanted.*has {servers()[0].version}"):
        choose(9)


def test_a_server_of_a_tests_own_has_the_version_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for binaries in servers():
        monkeypatch.setenv("HEADRACE_TEST_PG", str(binaries.version))
        assert choose() == binaries


@pytest.mark.parametrize("binaries", servers(), ids=str)
def test_each_version_starts_and_takes_databases(binaries: Binaries) -> None:
    databases = Databases(str(binaries.version))
    with connect(databases.take()) as connection:
        assert one(connection, "SHOW server_version").startswith(str(binaries.version))
    databases.close()
    assert not answers(databases.server)


def test_a_machine_without_postgresql_has_the_one_of_the_wheel() -> None:
    place = Place()
    try:
        assert place.run(wheels()[0] / "postgres", "--version").wait(20) == 0
    finally:
        place.close()


def test_programs_that_lie_where_only_root_may_look_are_copied_for_who_runs_them(tmp_path: Path) -> None:
    programs = tmp_path / "home" / "wheel" / "pginstall" / "bin"
    programs.mkdir(parents=True)
    (tmp_path / "home" / "wheel.libs").mkdir()
    (tmp_path / "home" / "wheel.libs" / "said").write_text("postgres 0.1")
    postgres = programs / "postgres"
    postgres.write_text('#!/bin/sh\ncat "$(dirname "$0")/../../../wheel.libs/said"')
    postgres.chmod(0o755)
    (tmp_path / "home").chmod(0o700)
    place = Place()
    try:
        folder = Binaries(0, programs).within_reach(place)
        assert place.run(folder / "postgres", "--version").wait(20) == 0
        assert place.said() == "postgres 0.1"
        assert (folder == programs) == (os.geteuid() != 0)
    finally:
        place.close()


def test_a_url_carries_all_that_a_dsn_says() -> None:
    dsn = "host=/var/run/x user='a b' password='p@ss/w:rd' dbname='x y' application_name='a&b' port=6"
    assert conninfo_to_dict(url_of(dsn)) == conninfo_to_dict(dsn)
    assert conninfo_to_dict(url_of("postgresql://[::1]:7/a", dbname="b")) == {"host": "::1", "port": "7", "dbname": "b"}


# --- outages ----------------------------------------------------------------------------------------------------


@contextmanager
def table(server: PrivateServer) -> Iterator[Connection]:
    with server.connect() as owner:
        owner.execute("DROP TABLE IF EXISTS ledger; CREATE TABLE ledger (id int)")
        yield owner


@pytest.mark.parametrize("how", ["fast", "immediate", "kill"])
def test_what_was_committed_is_there_after_an_outage_and_sessions_are_not(server: PrivateServer, how: str) -> None:
    with table(server) as session:
        session.execute("INSERT INTO ledger VALUES (1)")
        if how == "kill":
            server.kill()
        else:
            server.stop(how)
        assert server.processes() == []
        assert not answers(server.dsn())
        server.start()
        with pytest.raises(psycopg.OperationalError):
            session.execute("SELECT 1")
    with server.connect() as new:
        assert one(new, "SELECT count(*) FROM ledger") == 1


def test_a_frozen_server_takes_connections_and_answers_when_it_is_thawed(server: PrivateServer) -> None:
    with server.connect() as session:
        server.freeze()
        asked = Asked(session, "SELECT 42")
        assert silent(server.port)
        assert asked.waits()
        server.thaw()
        assert asked.end().answer == 42


def test_a_server_that_turns_read_only_keeps_its_sessions_and_refuses_to_write(server: PrivateServer) -> None:
    with table(server) as session:
        server.read_only()
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            session.execute("INSERT INTO ledger VALUES (1)")
        server.read_only(False)
        session.execute("INSERT INTO ledger VALUES (1)")


def test_settings_reach_the_sessions_that_are_there_and_go_back(private_server: StartServer) -> None:
    server = private_server(default_transaction_isolation="serializable")
    with server.connect() as session:
        assert one(session, "SHOW default_transaction_isolation") == "serializable"
        server.set(default_transaction_isolation="repeatable read", lock_timeout=1234)
        assert one(session, "SHOW default_transaction_isolation") == "repeatable read"
        assert one(session, "SHOW lock_timeout") == "1234ms"
        server.set(default_transaction_isolation=None, lock_timeout=None)
        assert one(session, "SHOW default_transaction_isolation") == "serializable"
        assert one(session, "SHOW lock_timeout") == "0"


def test_a_full_disk_refuses_rows_and_takes_them_again_when_there_is_room(private_server: StartServer) -> None:
    if not may_mount():  # what is tested is the tool, and it says so where it cannot be had
        with pytest.raises(RuntimeError, match="mount"):
            private_server(disk=24)
        return
    server = private_server(disk=24)
    with connect(server.small_dsn()) as session:
        session.execute("CREATE TABLE ledger (id int, filler text)")
        server.fill_disk()
        with pytest.raises(psycopg.errors.DiskFull):
            session.execute("INSERT INTO ledger SELECT n, 'x' FROM generate_series(1, 10000) n")
        server.make_room()
        session.execute("INSERT INTO ledger SELECT n, 'x' FROM generate_series(1, 1000) n")
        assert one(session, "SELECT count(*) FROM ledger") == 1000


CHILD = """
import sys
sys.path[:0] = sys.argv[1:]
from pg_server import PrivateServer
server = PrivateServer()
server.freeze()
print(server.place.folder, flush=True)
sys.stdin.read()
"""


def test_a_server_goes_with_the_test_run_that_was_killed(tmp_path: Path) -> None:
    """Even a frozen one, and its folder with it."""
    command = [sys.executable, "-c", CHILD, str(Path(__file__).parent)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        folder = Path(child.stdout.readline().strip())
        assert working_in(folder)
        child.send_signal(signal.SIGKILL)
    wait_until(lambda: not folder.exists() and not working_in(folder), 20)


# --- the network ------------------------------------------------------------------------------------------------


def test_through_a_proxy_all_is_as_without_it(server: PrivateServer, proxy: StartProxy) -> None:
    with connect(proxy(server.dsn()).dsn) as session:
        assert one(session, "SELECT 42") == 42
        big = "x" * 5_000_000
        assert session.execute("SELECT %s::text", [big]).fetchone() == (big,)


def test_a_cut_breaks_what_is_there_and_lets_in_what_comes(server: PrivateServer, proxy: StartProxy) -> None:
    between = proxy(server.dsn())
    with connect(between.dsn) as session:
        pid = one(session, "SELECT pg_backend_pid()")
        asked = Asked(session, "SELECT pg_sleep(60)")
        between.cut()
        assert isinstance(asked.end().error, psycopg.OperationalError)
        assert answers(between.dsn)
        with server.connect() as admin:
            admin.execute("SELECT pg_terminate_backend(%s)", [pid])


def test_who_is_refused_is_let_in_when_all_is_well_again(server: PrivateServer, proxy: StartProxy) -> None:
    between = proxy(server.dsn())
    with connect(between.dsn) as session:
        between.refuse()
        with pytest.raises(psycopg.OperationalError):
            session.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError, match="refused"):
            connect(between.dsn)
        between.resume()
        assert answers(between.dsn)


def test_what_is_held_flows_later(server: PrivateServer, proxy: StartProxy) -> None:
    between = proxy(server.dsn())
    with connect(between.dsn) as session:
        between.hold()
        asked = Asked(session, "SELECT 42")
        assert silent(between.port)
        assert asked.waits()
        between.resume()
        assert asked.end().answer == 42


def test_a_held_connection_can_be_cut(server: PrivateServer, proxy: StartProxy) -> None:
    between = proxy(server.dsn())
    with connect(between.dsn) as session:
        between.hold()
        asked = Asked(session, "SELECT 42")
        wait_until(lambda: between.requests > 1)
        between.cut()
        assert isinstance(asked.end().error, psycopg.OperationalError)
        between.resume()
        assert answers(between.dsn)


def test_delay_delays(server: PrivateServer, proxy: StartProxy) -> None:
    between = proxy(server.dsn())
    with connect(between.dsn) as session:
        between.delay(0.05)
        start = time.monotonic()
        assert one(session, "SELECT 42") == 42
        assert time.monotonic() - start >= 0.1


def test_lost_answers_are_those_of_work_that_was_done(server: PrivateServer, proxy: StartProxy) -> None:
    between = proxy(server.dsn())
    with table(server) as owner, connect(between.dsn) as session:
        between.lose_answers()
        asked = Asked(session, "INSERT INTO ledger VALUES (1) RETURNING id")
        wait_until(lambda: one(owner, "SELECT count(*) FROM ledger") == 1)
        assert asked.waits()
        between.cut()
        assert isinstance(asked.end().error, psycopg.OperationalError)


@pytest.mark.parametrize("arrives", [False, True], ids=["before", "after"])
def test_a_break_at_a_request_comes_before_it_or_after_it(
    server: PrivateServer, proxy: StartProxy, arrives: bool
) -> None:
    between = proxy(server.dsn())
    with table(server) as owner, connect(between.dsn) as session:
        between.break_at(2, arrives)
        session.execute("INSERT INTO ledger VALUES (1)")
        # It begins to answer, with megabytes, before it commits.
        insert = "INSERT INTO ledger SELECT n FROM generate_series(1, 20000) n RETURNING repeat('x', 500)"
        with pytest.raises(psycopg.OperationalError):
            session.execute(insert)
        assert one(owner, "SELECT count(*) FROM ledger") == (20001 if arrives else 1)
        assert answers(between.dsn)


def test_without_its_server_a_proxy_hangs_up(private_server: StartServer, proxy: StartProxy) -> None:
    server = private_server()
    between = proxy(server.dsn())
    assert answers(between.dsn)
    server.stop()
    assert not answers(between.dsn)
    server.start()
    assert answers(between.dsn)


# --- a pooler ---------------------------------------------------------------------------------------------------


def test_pgbouncer_gives_each_transaction_another_connection(
    server: PrivateServer, bouncer: Callable[..., Bouncer]
) -> None:
    """What makes sessions useless behind it: two clients hold one lock, and prepared statements are somebody else's."""
    between = bouncer(server.dsn(), size=1)
    with connect(between.dsn) as one_client, connect(between.dsn) as other:
        assert one(one_client, "SELECT pg_backend_pid()") == one(other, "SELECT pg_backend_pid()")
        assert one(one_client, "SELECT pg_try_advisory_lock(42)")
        assert one(other, "SELECT pg_try_advisory_lock(42)")
        one_client.execute("SELECT 42", prepare=True)
        with pytest.raises(psycopg.errors.DuplicatePreparedStatement):
            other.execute("SELECT 42", prepare=True)
