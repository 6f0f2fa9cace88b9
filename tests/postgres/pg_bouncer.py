"""PgBouncer in transaction mode: each transaction of a client may be on another connection to the server."""

from __future__ import annotations

import shutil

import psycopg
from pg_place import Place, free_port
from pg_url import url_of
from psycopg.conninfo import conninfo_to_dict

from headrace.testing.clock import wait_until

CONFIG = """\
[databases]
{database} = {server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {size}
query_wait_timeout = 20
"""


class Bouncer:
    """In front of the database of ``target``, with ``size`` connections to it; ``dsn`` leads through it."""

    def __init__(self, target: str, size: int = 2) -> None:
        program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
        if program is None:
            raise LookupError("these tests need PgBouncer: apt-get install pgbouncer, or what your system calls it")
        self.place = Place()
        port = free_port()
        given = conninfo_to_dict(target)
        names = [name for name in ("host", "port", "user", "password", "dbname") if given.get(name)]
        server = " ".join(f"{name}='{given[name]}'" for name in names)
        self.dsn = url_of(target, host="127.0.0.1", port=port, password=None)
        config = self.place.folder / "pgbouncer.ini"
        config.write_text(CONFIG.format(database=given["dbname"], server=server, port=port, size=size))
        config.chmod(0o644)
        self._process = self.place.run(program, config)
        try:
            wait_until(self._ready, 20.0)
        except BaseException:
            self.close()
            raise

    def _ready(self) -> bool:
        if self._process.poll() is not None:
            raise RuntimeError(f"PgBouncer ended with {self._process.returncode}: {self.place.said()}")
        try:
            psycopg.connect(self.dsn, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def close(self) -> None:
        self.place.close()
