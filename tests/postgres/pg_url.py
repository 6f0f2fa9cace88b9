"""postgresql:// URLs, which are what a queue is opened with, from what a driver knows of a server."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from psycopg.conninfo import conninfo_to_dict


def url_of(dsn: str, **changes: Any) -> str:
    """``dsn``, a URL or ``key=value`` pairs, as a URL, with these of its parameters changed; None removes one."""
    given = {**conninfo_to_dict(dsn), **changes}
    rest = {name: str(value) for name, value in given.items() if value is not None}
    user, password, host = rest.pop("user", ""), rest.pop("password", ""), rest.pop("host", "127.0.0.1")
    port, database = rest.pop("port", "5432"), rest.pop("dbname", "")
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    where = f"[{host}]" if ":" in host else quote(host, safe="")
    url = f"postgresql://{login and login + '@'}{where}:{port}/{quote(database, safe='')}"
    return f"{url}?{urlencode(rest, quote_via=quote)}" if rest else url
