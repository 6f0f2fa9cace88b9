"""A command in a process of its own, in its own process group, at a terminal where it matters."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence

from headrace.testing.clock import wait_until

COMMAND = [sys.executable, "-m", "headrace.cli"]
LIMIT = 20.0
"""Seconds within which anything that is waited for must have happened, on a slow machine too."""


class Program:
    """A command in a process, and its process group; with a terminal of its own where asked for."""

    def __init__(self, args: Sequence[str], env: dict[str, str], terminal: bool, before: Sequence[str] = ()) -> None:
        command = [*before, *COMMAND, *args]
        self._output = b""
        if terminal:
            self._master, slave = os.openpty()
            # A new session with this as its terminal: only then does the kernel turn ^C into SIGINT.
            login = "import os, sys; os.login_tty(int(sys.argv[1])); os.execvp(sys.argv[2], sys.argv[2:])"
            command = [sys.executable, "-c", login, str(slave), *command]
            self.process = subprocess.Popen(command, env=env, pass_fds=[slave])
            os.close(slave)
            read = self._master
        else:
            self.process = subprocess.Popen(
                command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
            )
            assert self.process.stdout is not None
            read = self.process.stdout.fileno()
        self._reader = threading.Thread(target=self._read, args=(read,), daemon=True)
        self._reader.start()

    def _read(self, read: int) -> None:
        while True:
            try:
                chunk = os.read(read, 65536)
            except OSError:  # a terminal whose last user is gone
                return
            if not chunk:
                return
            self._output += chunk

    @property
    def output(self) -> str:
        return self._output.decode("utf-8", "replace")

    def says(self, text: str) -> None:
        try:
            wait_until(lambda: text in self.output, LIMIT)
        except TimeoutError:
            raise AssertionError(f"never said {text!r}, but: {self.output}") from None

    def press_ctrl_c(self) -> None:
        os.write(self._master, b"\x03")

    def signal(self, number: int) -> None:
        """To everyone in its process group, as a terminal or an init system does."""
        os.killpg(self.process.pid, number)

    def ends(self, limit: float = LIMIT) -> int:
        """Its exit code."""
        code = self.process.wait(limit)
        self._reader.join(LIMIT)
        return code

    def clear(self) -> None:
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(LIMIT)
        self._reader.join(LIMIT)
        if self.process.stdout is not None:
            self.process.stdout.close()
        else:
            os.close(self._master)
