"""Process handlers: in children of our own, spawned, reused, one job at a time each.

``concurrent.futures`` would not do: there one child that dies breaks the pool and every job in it, and a job
that runs cannot be stopped. Here a child that dies fails its own job only, and one that overruns is killed.

Each child is minded by a thread that waits for its answer or its death. What ``stop`` and that thread share
is guarded by one lock.
"""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection, wait
from typing import Any

from ...clock import FAR, Clock
from ...queue import Settled
from ..call import import_path
from ..outcome import NEVER, RETURNED, Answer, ProcessDied, Stop
from ..recycle import Recycle
from ..run import Run, after
from .child import ARMOUR, SETTLED, main, understood
from .threads import Threads

KILL_GRACE = 0.5
"""Seconds between SIGTERM and SIGKILL."""

_TRIES = 3
"""Children that may die in a row, from idleness, before a job counts as failed by it."""

_spawn = multiprocessing.get_context("spawn")
_numbers = itertools.count(1)


class Child:
    """One child process and the pipe to it."""

    def __init__(self) -> None:
        self.pipe: Connection
        self.pipe, theirs = _spawn.Pipe()
        self.process = _spawn.Process(target=main, args=(theirs,), name=f"headrace-child-{next(_numbers)}", daemon=True)
        # Until it ignores SIGINT itself, a child is shielded by what it inherits: the signals blocked here.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ARMOUR)
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self.doomed = False
        self.jobs = 0
        """How many it has done."""
        self._sending = threading.Lock()
        try:
            ready = self._reply() is not None
        except (EOFError, OSError):
            ready = False
        if not ready:
            self.process.join(KILL_GRACE)
            self.pipe.close()
            raise RuntimeError(f"a worker process did not start: {_epitaph(self.process.exitcode)}")

    def perform(self, message: bytes, settled: Callable[[Settled], None]) -> Answer | None:
        """Send a job and wait for its answer, or for the child's death. None: it died before it had begun.
        ``settled`` is told when the handler settles the job itself."""
        begun = False
        try:
            self._send(b"R" + message)
            begun = self._reply() is not None
            reply = self._reply() if begun else None
            while reply is not None and reply[0] == SETTLED:
                settled(reply[2])
                reply = self._reply()
            if reply is not None:
                return understood(reply) or RETURNED
        except (EOFError, OSError):
            pass
        self.doomed = True
        self.process.join(KILL_GRACE)
        return ProcessDied(_epitaph(self.process.exitcode)) if begun else None

    def _reply(self) -> Any:
        """What the child says next; None when it is dead."""
        # A grandchild may hold the pipe open after the child's death, so that is looked for as well.
        while not wait([self.pipe, self.process.sentinel], timeout=1.0):
            if self.process.exitcode is not None:
                break
        return self.pipe.recv() if self.pipe.poll() else None

    def ask(self, number: int) -> None:
        """Tell the handler that somebody wants its job cancelled."""
        try:
            self._send(b"S%d" % number)
        except OSError:
            pass

    def terminate(self) -> None:
        """SIGTERM, to the child and to what its handler started: it takes one from nobody but us."""
        try:
            self._send(b"T")
        except OSError:
            pass

    def end(self) -> None:
        """Let an idle child go."""
        try:
            self._send(b"E")
        except OSError:
            pass

    def signal(self, which: signal.Signals) -> None:
        """To the child, and to what its handler started, once it leads a group of its own."""
        pid = self.process.pid
        if pid is None or self.process.exitcode is not None:
            return
        try:
            if os.getpgid(pid) == pid:
                os.killpg(pid, which)
            else:
                os.kill(pid, which)
        except ProcessLookupError:
            pass

    def _send(self, message: bytes) -> None:
        with self._sending:
            self.pipe.send_bytes(message)


class ProcessRunner:
    """Hands each run to a child that idles, or to a new one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str, clock: Clock, recycle: Recycle) -> None:
        self._loop = loop
        self._clock = clock
        self._recycle = recycle
        self._name = name
        self._size = FAR
        self._leaving: set[threading.Thread] = set()
        self._threads = Threads(loop, f"{name}-minder", self._perform)
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._at_work: set[Child] = set()
        self._closed = False
        self._jobs = itertools.count(1)

    @property
    def zombies(self) -> int:
        return 0  # a child can be killed

    def start(self, run: Run) -> None:
        self._threads.start(run, _answer)

    def stop(self, run: Run, why: Stop) -> None:
        with self._lock:  # so that the child is not given back, and to another job, in between
            if not isinstance(run.work, tuple):
                # Its minder has not handed it to a child yet, and looks before it does.
                if why is not Stop.ASKED:
                    self._loop.call_soon(run.answer, NEVER)
                return
            child, number = run.work
            if why is Stop.ASKED:
                child.ask(number)
                return
            child.doomed = True
            child.terminate()
        if run.alarm is not None:
            run.alarm.cancel()
        run.alarm = self._clock.call_at(
            self._loop, after(self._clock, KILL_GRACE), lambda: child.signal(signal.SIGKILL)
        )

    def keep(self, size: int) -> None:
        self._threads.keep(size)
        with self._lock:
            self._size = size
            spare = max(0, min(len(self._idle), len(self._idle) + len(self._at_work) - size))
            idle, self._idle = self._idle[:spare], self._idle[spare:]
        for child in idle:
            self._let_go(child)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            for child in self._at_work:
                child.signal(signal.SIGKILL)  # whoever could be waited for has been
        for child in idle:
            child.end()
        for child in idle:
            _bury(child)
        for thread in tuple(self._leaving):
            thread.join(2 * KILL_GRACE)
        self._threads.close()

    def _let_go(self, child: Child) -> None:
        """End it, and see it gone without making anybody wait for that."""
        child.end()

        def see_off() -> None:
            _bury(child)
            self._leaving.discard(thread)

        thread = threading.Thread(target=see_off, name=f"{self._name}-farewell", daemon=True)
        self._leaving.add(thread)
        thread.start()

    def _perform(self, run: Run) -> Answer:
        """In a minder's thread."""
        number = next(self._jobs)
        message = _message(run, number)
        armed = False
        for _ in range(_TRIES):
            child = self._take()
            try:
                if not armed:  # not before: a child takes its time to start
                    armed = True
                    self._loop.call_soon_threadsafe(run.arm, self._loop)
                with self._lock:
                    run.work = (child, number)
                    self._at_work.add(child)
                    stopped = Stop.DRAIN if self._closed else run.stopped
                if stopped is not None and stopped is not Stop.ASKED:
                    break
                answer = child.perform(message, lambda how: run.context.settled(run.job, how))
                if answer is not None:
                    return answer
            finally:
                self._give_back(run, child)
        return ProcessDied("the process that was to run it ended before it began")

    def _take(self) -> Child:
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.process.is_alive() and not child.doomed:
                    return child
                child.pipe.close()
        return Child()

    def _give_back(self, run: Run, child: Child) -> None:
        with self._lock:
            run.work = None
            self._at_work.discard(child)
            child.jobs += 1
            spare = len(self._idle) + len(self._at_work) >= self._size
            if not (self._closed or child.doomed or spare or self._recycle.due(child.jobs, child.process.pid)):
                self._idle.append(child)
                return
        if self._closed or child.doomed:
            child.end()
            _bury(child)
        else:
            self._let_go(child)


def _answer(run: Run, answer: Answer | Awaitable[object]) -> None:
    assert not isinstance(answer, Awaitable)
    run.answer(answer)


def _message(run: Run, number: int) -> bytes:
    call = run.call
    assert call is not None
    path = import_path(call.function)
    return pickle.dumps((number, path, call.args, call.kwargs, run.job, run.timeout or None))


def _bury(child: Child) -> None:
    """See that it is gone."""
    child.process.join(KILL_GRACE)
    if child.process.exitcode is None:
        child.signal(signal.SIGKILL)
        child.process.join(KILL_GRACE)
    child.pipe.close()


def _epitaph(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return f"the process that ran it was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"the process that ran it was killed by signal {-code}"
    return f"the process that ran it ended with exit code {code} in the middle of the job"
