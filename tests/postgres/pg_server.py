"""A PostgreSQL server of a test's own, which may be stopped, killed, frozen, made read-only, or run out of disk."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import psycopg
from pg_binaries import Binaries, choose
from pg_place import USER, Place, free_port, tell, working_in
from psycopg import sql

from headrace.testing.clock import wait_until

LIMIT = 30.0
"""Seconds within which a server has to do as it is told, on a slow machine too."""
STOP = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
SETTINGS: dict[str, Any] = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "16MB",
    "max_connections": 60,
}


class PrivateServer:
    """Made and started in about a second, on a free port of 127.0.0.1, where everybody may be ``postgres``.

    ``settings`` go into postgresql.conf. ``disk`` is the size in MiB of a disk of its own, see ``small_dsn``; that is
    a RuntimeError where ``may_mount`` says no.
    """

    def __init__(self, binaries: Binaries | None = None, disk: int = 0, **settings: Any) -> None:
        if disk and not may_mount():
            raise RuntimeError("this machine does not let a test mount a disk, not in a namespace of its own either")
        self.place = Place()
        self.port = free_port()
        self.version = (binaries or choose()).version
        self._data = self.place.folder / "data"
        self._disk, self._small = disk, self.place.folder / "small"
        self._postmaster: subprocess.Popen[bytes] | None = None
        try:
            self._bin = (binaries or choose()).within_reach(self.place)
            self._make({**SETTINGS, **settings})
            self.start()
        except BaseException:
            self.close()
            raise

    def _make(self, settings: dict[str, Any]) -> None:
        options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]
        if self.place.run(self._bin / "initdb", "-D", self._data, *options).wait(LIMIT):
            raise RuntimeError(f"initdb failed: {self.place.said()}")
        with (self._data / "postgresql.conf").open("a") as conf:
            conf.write(f"port = {self.port}\nunix_socket_directories = '{self.place.folder}'\n")
            conf.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def dsn(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.dsn(database), autocommit=True, connect_timeout=5)

    # --- its life -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Returns when it takes connections."""
        command: list[str | Path] = [self._bin / "postgres", "-D", self._data]
        if self._disk:
            command = self._on_small_disk(*command)
        self._postmaster = self.place.run(*command, as_root=bool(self._disk))
        wait_until(self._ready, LIMIT)

    def _ready(self) -> bool:
        assert self._postmaster is not None
        if self._postmaster.poll() is not None:
            raise RuntimeError(f"the server ended with {self._postmaster.returncode}: {self.place.said()}")
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, how: str = "fast") -> None:
        """``fast`` breaks all connections; ``immediate`` also leaves the next start to recover; ``smart`` waits."""
        self._end(STOP[how])

    def kill(self) -> None:
        """SIGKILL to the postmaster; its children see that it is gone, and go too."""
        self._end(signal.SIGKILL)

    def _end(self, number: int) -> None:
        assert self._postmaster is not None
        self._postmaster.send_signal(number)
        self._postmaster.wait(LIMIT)
        wait_until(lambda: not self.processes(), LIMIT)

    def restart(self, how: str = "fast") -> None:
        self.stop(how)
        self.start()

    def close(self) -> None:
        self.place.close()

    # --- what may befall it ---------------------------------------------------------------------------------

    def processes(self) -> list[int]:
        return working_in(self._data)

    def freeze(self) -> None:
        """As where a machine hangs: connections stay, also new ones are taken by the kernel, and nobody answers."""
        frozen: list[int] = []
        while new := [pid for pid in self.processes() if pid not in frozen]:  # one may just have been forked
            tell(new, signal.SIGSTOP)
            frozen += new

    def thaw(self) -> None:
        tell(self.processes(), signal.SIGCONT)

    def set(self, **settings: Any) -> None:
        """Change settings as ALTER SYSTEM does, for sessions that are there as well; None goes back to the default."""
        with self.connect() as admin:
            for name, value in settings.items():
                if value is None:
                    admin.execute(sql.SQL("ALTER SYSTEM RESET {}").format(sql.Identifier(name)))
                else:
                    change = sql.SQL("ALTER SYSTEM SET {} = {}")
                    admin.execute(change.format(sql.Identifier(name), sql.Literal(value)))
            before = self._loaded()
            admin.execute("SELECT pg_reload_conf()")
        wait_until(lambda: self._loaded() != before, LIMIT)

    def _loaded(self) -> Any:
        with self.connect() as new:  # a session that is there may read the settings a moment later
            return new.execute("SELECT pg_conf_load_time()").fetchone()

    def read_only(self, on: bool = True) -> None:
        """As after a failover to a standby: sessions stay, and refuse to write with SQLSTATE 25006."""
        self.set(default_transaction_read_only="on" if on else None)

    # --- a disk that gets full ------------------------------------------------------------------------------

    def _on_small_disk(self, *command: str | Path) -> list[str | Path]:
        """``command`` with a small file system that only it sees, and that is gone when the server is."""
        self._small.mkdir(exist_ok=True)
        owner = USER.pw_uid if USER else 0  # who is root in a namespace is the user outside
        mount = f'mount -t tmpfs -o size={self._disk}m,mode=700,uid={owner} none "$0" && exec "$@"'
        # To mount, one has to be root, in a namespace at least; and then to be somebody else again.
        if USER:
            root = ["unshare", "-m"]
            user = ["setpriv", f"--reuid={USER.pw_uid}", f"--regid={USER.pw_gid}", "--clear-groups"]
        else:
            root = ["unshare", "-rm"]
            user = ["unshare", f"--map-user={os.getuid()}", f"--map-group={os.getgid()}"]
        return [*root, "sh", "-c", mount, self._small, *user, *command]

    def small_dsn(self) -> str:
        """A database all of which is on a disk of ``disk`` MiB, 8 of which are taken already; once for each start."""
        with self.connect() as admin:
            admin.execute(sql.SQL("CREATE TABLESPACE small LOCATION {}").format(sql.Literal(str(self._small))))
            admin.execute("CREATE DATABASE small TEMPLATE template0 TABLESPACE small")
        return self.dsn("small")

    def fill_disk(self) -> None:
        """To the last page: a table that needs one more gets SQLSTATE 53100."""
        try:
            self._ballast("SELECT repeat('b', 1048576) FROM generate_series(0, 1000)")
        except psycopg.errors.DiskFull:
            return
        raise AssertionError("the disk has more than 1000 MiB")

    def make_room(self) -> None:
        """As when somebody has deleted files."""
        self._ballast("SELECT 1 WHERE false")

    def _ballast(self, query: str) -> None:
        with self.connect() as admin:  # the server writes it, for only the server sees that disk
            admin.execute(f"COPY ({query}) TO '{self._small}/ballast'".encode())


def may_mount() -> bool:
    """Whether this machine lets a test have a small disk."""
    command = ["unshare", "-m" if USER else "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
    return bool(shutil.which("unshare")) and subprocess.run(command, capture_output=True, check=False).returncode == 0
