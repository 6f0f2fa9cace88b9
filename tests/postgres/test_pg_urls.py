"""URLs with a mistake in them: it is named, at once where waiting does not help, and no password is shown."""

from __future__ import annotations

import time

import pytest
from pg_kit import cli, connected, stranger
from pg_url import url_of
from psycopg.conninfo import conninfo_to_dict

import headrace
from headrace import ConfigError, Job, Unavailable
from headrace.connect import split_url


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("archiv=5", r"url: archiv: no such setting \(did you mean archive\?\)"),
        ("schema=jobs&leas=5", r"leas: no such setting \(did you mean lease\?\)"),
        ("sslmod=require", r"sslmod: no such setting \(did you mean sslmode\?\)"),
        ("xyzzy=1", r"xyzzy: no such setting; there are queue, "),
    ],
)
def test_a_misspelt_setting_in_the_url_is_named(query: str, says: str) -> None:
    url = f"postgresql://ann:S3cr3t@127.0.0.1:1/shop?{query}"
    with pytest.raises(ConfigError, match=says) as refused:
        headrace.connect(url)
    assert "S3cr3t" not in repr(refused.value)
    assert cli("stats", "--url", url).exit_code == 3


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("migrate=maybe", "migrate: 'maybe' is neither True nor False"),
        ("direct=nonsense", "direct: not an address"),
        ("connections=0", "connections: 0 is not a whole number from 1"),
        ("archive=long", "archive: 'long' is not a number of seconds"),
        ("lease=-1", "lease: -1 is not a number of seconds"),
    ],
)
@pytest.mark.parametrize("command", ["stats", "stats --queue default", "migrate", "doctor", "archive", "dead list"])
def test_every_command_refuses_a_bad_value_in_the_url(dsn: str, command: str, query: str, says: str) -> None:
    headrace.connect(dsn).close()
    result = cli(*command.split(), "--url", f"{dsn}{'&' if '?' in dsn else '?'}{query}")
    assert (result.exit_code, result.stderr[: len(f"headrace: {says}")]) == (3, f"headrace: {says}")


@pytest.mark.parametrize("password", ["S3cr3t/S3cr3t", "12/S3cr3t", "a?S3cr3t/b=c", "S3cr3t@S3cr3t"])
def test_a_password_that_is_not_encoded_is_refused_and_not_shown(password: str) -> None:
    with pytest.raises(ConfigError, match="percent-encoded") as refused:
        headrace.connect(f"postgresql://ann:{password}@127.0.0.1:1/shop")
    assert "S3cr3t" not in repr(refused.value)


@pytest.mark.parametrize(
    ("url", "theirs"),
    [
        ("postgresql:///shop", "postgresql:///shop"),
        ("postgresql:///shop?schema=jobs&host=/run/postgresql", "postgresql:///shop?host=/run/postgresql"),
        ("postgres://a,b:5433/shop?lease=5", "postgresql://a,b:5433/shop"),
        ("postgresql://db/shop?options=-c%20jit%3Doff&archive=5", "postgresql://db/shop?options=-c%20jit%3Doff"),
    ],
)
def test_what_is_for_the_driver_reaches_it_letter_by_letter(url: str, theirs: str) -> None:
    assert split_url(url)[1] == theirs


def test_options_of_the_session_reach_the_server(dsn: str) -> None:
    with headrace.connect(url_of(dsn, options="-c search_path=here")) as queue:
        shown = queue.store.stock.run(lambda connection, again: connection.execute("SHOW search_path").fetchone())  # type: ignore[attr-defined]
    assert shown == ("here",)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"dbname": "nowhere"}, 'database "nowhere" does not exist'),
        ({"user": "nobody_here"}, 'role "nobody_here" does not exist'),
        ({"sslmode": "wrong"}, 'invalid sslmode value: "wrong"'),
    ],
)
def test_what_no_waiting_mends_is_told_at_once(dsn: str, change: dict[str, str], says: str) -> None:
    begun = time.monotonic()
    with pytest.raises(Unavailable, match=rf"no way in \(.*{says}\): look at the user, the password"):
        headrace.connect(url_of(dsn, **change), patience=600)
    assert time.monotonic() - begun < 60  # of 600 s


def test_of_several_hosts_another_one_is_waited_for(dsn: str) -> None:
    url = url_of(dsn, dbname="nowhere").replace("127.0.0.1", "127.0.0.1,127.0.0.1")
    where = conninfo_to_dict(url)
    assert where["host"] == "127.0.0.1,127.0.0.1"
    with pytest.raises(Unavailable, match=r"did not answer, for 0\.1 s now"):
        headrace.connect(url, patience=0.1)


def test_a_server_without_a_connection_left_is_told_as_such(dsn: str) -> None:
    with headrace.connect(dsn), stranger(dsn) as (url, name), connected(dsn) as owner:
        owner.execute(f"ALTER ROLE {name} CONNECTION LIMIT 0".encode())
        with pytest.raises(Unavailable, match="has no connection left"):
            headrace.connect(url, patience=0.1)


def test_who_may_not_use_the_tables_is_told_which_rights_are_missing(dsn: str) -> None:
    """Whichever command finds it out, and wherever it stops."""
    database = conninfo_to_dict(dsn)["dbname"]
    with headrace.connect(dsn) as queue, stranger(dsn) as (url, name), connected(dsn) as owner:
        queue.enqueue(Job())
        looked = cli("stats", "--url", url)
        assert (looked.exit_code, "GRANT it USAGE on the schema" in looked.stderr) == (3, True)
        assert f"/{database}: this user may not do that (permission denied for schema headrace)" in looked.stderr
        owner.execute(
            f"GRANT USAGE ON SCHEMA headrace TO {name};"
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA headrace TO {name}".encode()
        )
        with (
            headrace.connect(url) as poor,
            pytest.raises(ConfigError, match=r"permission denied for sequence .*GRANT it USAGE on .* its sequences"),
        ):
            poor.dequeue(0)
