"""F37: neither a password nor a payload is in any log, error or repr, whatever goes wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable
from urllib.parse import quote

import pytest
from pg_place import free_port
from pg_proxy import Proxy
from pg_url import url_of
from psycopg.conninfo import conninfo_to_dict

from headrace import Job, Unavailable, connect
from headrace.testing.clock import wait_until

SECRET = "S3cr3t/p@ss word"
SHOWN = [SECRET, quote(SECRET, safe=""), quote(SECRET), "S3cr3t"]
WAYS = {
    "in front of the host": lambda user, where: f"postgresql://{user}:{quote(SECRET, safe='')}@{where}",
    "as a parameter": lambda user, where: f"postgresql://{user}@{where}?password={quote(SECRET, safe='')}",
}


@pytest.mark.parametrize("way", WAYS)
def test_no_password_is_in_any_log_error_or_repr(
    way: str,
    dsn: str,
    proxy: Callable[[str], Proxy],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """While all is well, when the server is away, when there is none and when there is no such database."""
    caplog.set_level(logging.DEBUG)
    between = proxy(dsn)
    given = conninfo_to_dict(dsn)
    user, name = given["user"], given["dbname"]
    said = []

    def url(port: int, database: object = name) -> str:
        return WAYS[way](user, f"127.0.0.1:{port}/{database}")

    queue = connect(url(between.port), patience=0.3, poll=60)
    said += [repr(queue), repr(queue.settings), repr(queue.store), repr(queue.as_async)]  # type: ignore[attr-defined]
    assert queue.dequeue(0.5) is None  # long enough to fall asleep
    between.refuse()
    with pytest.raises(Unavailable) as away:
        queue.enqueue(Job())
    wait_until(lambda: "cannot be woken" in caplog.text, 20.0)
    queue.close()
    between.resume()
    for wrong in (url(free_port()), url(between.port, "nowhere")):
        with pytest.raises(Unavailable) as raised:
            connect(wrong, patience=0.1)
        said += [str(raised.value), repr(raised.value), str(raised.value.__cause__)]
    said += [str(away.value), str(away.value.__cause__), caplog.text, *capfd.readouterr()]
    assert [(secret, text) for secret in SHOWN for text in said if secret in text] == []
    assert f"127.0.0.1:{between.port}/{name}" in str(away.value)  # where, all the same


def test_no_payload_is_in_any_log_or_error(
    dsn: str, proxy: Callable[[str], Proxy], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    between = proxy(dsn)
    said = []
    with connect(url_of(between.dsn), patience=0.3) as queue:
        queue.enqueue(Job(b"hunter2", "job"))
        with pytest.raises(Exception, match="job") as duplicate:
            queue.enqueue(Job(b"hunter2", "job"))
        job = queue.dequeue(0)
        assert job is not None
        queue.ack(job)
        with pytest.raises(Exception, match="job") as lost:
            queue.ack(job)
        between.refuse()
        with pytest.raises(Unavailable) as away:
            queue.enqueue(Job(b"hunter2", "other"))
        between.resume()
    for raised in (duplicate, lost, away):
        said += [str(raised.value), str(raised.value.__cause__)]
    assert [text for text in [*said, caplog.text] if "hunter2" in text or b"hunter2".hex() in text] == []
