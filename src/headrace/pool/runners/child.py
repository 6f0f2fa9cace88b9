"""The other side of a process handler: the child, which runs one job at a time and answers in plain text.

Nothing but built-in values crosses the pipe on the way back: a result is not kept anyway, and an exception
may hold a lock, need arguments to be rebuilt, or have a class that exists only here.

The pipe is the lifeline too: when the parent dies, reading it ends, and so does the child.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import queue
import signal
import threading
from collections.abc import Awaitable
from multiprocessing import current_process
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, TypeAlias

from ...clock import SystemClock
from ...job import Cancel, Discard, Job, Outcome, Retry, Snooze
from ...queue import Settled
from ...text import describe
from ..call import load
from ..context import Context, by_hand, enter
from ..outcome import Raised, Stop
from ..run import after
from .threads import sound

Reply: TypeAlias = tuple[str, float | None, str | None]
"""Which kind of answer, a delay, a text."""

SETTLED = "settled"
"""Not an answer yet: the handler has settled the job itself."""

_Inbox: TypeAlias = "queue.SimpleQueue[bytes | None]"


ARMOUR = [signal.SIGINT, signal.SIGTERM]
"""The signals that are the parent's to judge."""


class _Context(Context):
    """Settled by hand, the parent has to know at once: it keeps the lease."""

    pipe: Connection | None = None

    def settled(self, job: Job, how: Settled) -> None:
        super().settled(job, how)
        if by_hand.pop(self, None) and self.pipe is not None:
            self.pipe.send((SETTLED, None, how))


class _State:
    """The running attempt's number and context, shared with the thread that listens."""

    number = 0
    context: Context | None = None
    ending = False
    """The parent wants it to end."""

    def on_sigterm(self, number: int, _: FrameType | None) -> None:
        if self.ending:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


def main(pipe: Connection) -> None:
    """Serve the parent until it closes the pipe or dies."""
    # Ctrl-C goes to everyone in the terminal's group, a SIGTERM of the init system to every process of the
    # service, and the parent decides what they mean: the child ignores them until the parent says so, and leaves
    # the group. Leading its own one, it can be ended together with what its handler started.
    state = _State()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, state.on_sigterm)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ARMOUR)
    os.setpgid(0, 0)
    current_process().daemon = False  # a daemon may start no processes, and a handler may want to
    inbox: _Inbox = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, inbox, state), name="lifeline", daemon=True).start()
    pipe.send("ready")
    while (message := inbox.get()) is not None:
        pipe.send("taken")  # from here on, our death is this job's failure
        pipe.send(_perform(message, state, pipe))


def _listen(pipe: Connection, inbox: _Inbox, state: _State) -> None:
    while True:
        try:
            message = pipe.recv_bytes()
        except (EOFError, OSError):
            os.killpg(0, signal.SIGKILL)
            os._exit(1)
        if message[:1] == b"R":
            inbox.put(message[1:])
        elif message[:1] == b"S":
            if state.context is not None and state.number == int(message[1:]):
                state.context.tell(Stop.ASKED)
        elif message == b"T":
            state.ending = True
            os.killpg(0, signal.SIGTERM)
        else:
            inbox.put(None)
            return


def _perform(message: bytes, state: _State, pipe: Connection) -> Reply:
    try:
        number, path, args, kwargs, job, seconds = pickle.loads(message)
        state.context = _context(job, seconds, pipe)
        state.number = number
        result = sound(load(path)(*args, **kwargs))
        if isinstance(result, Awaitable):
            asyncio.run(_finish(result))
        elif isinstance(result, Raised):
            return "raised", None, describe(result.error)
    except BaseException as error:  # SystemExit and its like end a job here, not the child
        return _reply(error)
    finally:
        state.context = None
    return "returned", None, None


async def _finish(awaitable: Awaitable[object]) -> None:
    await awaitable


def _context(job: Job, seconds: float | None, pipe: Connection) -> Context:
    clock = SystemClock()
    context = _Context(job, clock)
    context.pipe = pipe
    context.limit(None if seconds is None else after(clock, seconds))
    enter(context)
    return context


def _reply(error: BaseException) -> Reply:
    match error:
        case Retry():
            cause = error.error if error.error is not None else error.__cause__
            return "retry", _seconds(error.delay), describe(cause)
        case Snooze():
            return "snooze", _seconds(error.delay), None
        case Discard():
            return "discard", None, describe(error.reason)
        case Cancel():
            return "cancel", None, describe(error.reason)
        case _:
            return "raised", None, describe(error)


def _seconds(delay: Any) -> float | None:
    return delay if type(delay) in (int, float) else None


def understood(reply: Reply) -> Raised | None:
    """The parent's: what a reply says; None for a success."""
    kind, delay, text = reply
    outcome: Outcome
    match kind:
        case "returned":
            return None
        case "retry":
            outcome = Retry(delay, text)
        case "snooze":
            outcome = Snooze(float("nan") if delay is None else delay)
        case "discard":
            outcome = Discard(text or "")
        case "cancel":
            outcome = Cancel(text or "")
        case _:
            return Raised(text or "")
    return Raised(outcome)
