"""A folder, and programs that work in it: both go when the test run goes, however it ends, also by SIGKILL.

As a program, ``pg_place.py FOLDER``, this is the guard: it waits until its input ends or says so, then clears up.
For Linux: which programs work in a folder is read from /proc.
"""

from __future__ import annotations

import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def _someone_else() -> pwd.struct_passwd | None:
    """Who to be instead of root, whom PostgreSQL and PgBouncer refuse; None where this is not root."""
    if os.geteuid():
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


USER = _someone_else()


def working_in(folder: Path) -> list[int]:
    """The processes whose current folder is ``folder`` or one in it, parents mostly before their children."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            cwd = Path(os.readlink(f"/proc/{int(entry)}/cwd"))
        except (OSError, ValueError):  # ended meanwhile, somebody else's, or no process at all
            continue
        if cwd == folder or folder in cwd.parents:
            found.append(int(entry))
    return sorted(found)


def tell(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def clear(folder: Path) -> None:
    """End what works in ``folder`` (SIGQUIT, so that no shared memory stays; after 5 s SIGKILL), and remove it."""
    end = time.monotonic() + 5
    while pids := working_in(folder):
        tell(pids, signal.SIGQUIT)
        tell(pids, signal.SIGCONT)  # it may be frozen
        time.sleep(0.01)
        if time.monotonic() > end:
            tell(pids, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def as_someone_else() -> dict[str, Any]:
    """The arguments with which ``subprocess`` starts a program that refuses root."""
    return {"user": USER.pw_uid, "group": USER.pw_gid, "extra_groups": []} if USER else {}


def free_port() -> int:
    """Below the range from which the kernel takes ports by itself.

    From inside it another program may take the port while the server is down; and a client that tries to connect to
    a port of that range where nobody listens can, once in some thousand times, connect with itself.
    """
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


class Place:
    """A new folder, owned by whoever runs the programs in it, with a guard over it; ``close`` ends all of it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="headrace-")).resolve()
        if USER:
            os.chown(self.folder, USER.pw_uid, USER.pw_gid)
        self.log = self.folder / "log"
        self._running: list[subprocess.Popen[bytes]] = []
        # Its own session: ^C at the terminal ends the tests, and must not end what clears up behind them.
        command = [sys.executable, "-IS", __file__, str(self.folder)]
        self._guard = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, cwd="/")

    def run(self, *command: str | Path, as_root: bool = False) -> subprocess.Popen[bytes]:
        """Start a program in the folder; what it says goes to ``log``. Root is somebody else there unless asked for."""
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
                start_new_session=True,
                **({} if as_root else as_someone_else()),
            )
        self._running.append(process)
        return process

    def said(self) -> str:
        """The last lines of the log, to be shown where something failed."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])

    def close(self) -> None:
        if self._guard.returncode is None:
            self._guard.communicate(b".")  # a word: a forked child may hold a copy of the pipe open
            for process in self._running:
                process.wait()


if __name__ == "__main__":
    sys.stdin.buffer.read(1)
    clear(Path(sys.argv[1]))
