"""``Pool``: its settings, and what may be called from outside. What it does is in ``engine.py``."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Literal

import msgspec

from .. import check
from ..errors import ConfigError
from ..queue import AsyncQueue, Queue
from . import signals
from .balance import MOST, Balance
from .call import Handler, Resolver, resolver
from .driver import drive
from .engine import Engine
from .events import Listener
from .health import Health, Summary
from .options import Options
from .retry import RetryPolicy
from .schedule import Schedule
from .settle import UNSERVED_GRACE

log = logging.getLogger("headrace.pool")


class Pool:
    """Runs ``handler(job)``, or the call that ``handler.resolve(job)`` names, for each job of a queue.

    What follows from how a handler ends is in ``settle.py``. Bad settings raise ConfigError, and what cannot be a
    handler TypeError, both at construction.

    queue           either face of a queue
    workers         how many jobs run at once; 8 where neither this nor balance is given
    balance         between which limits their number changes with the load, and how; see ``balance.py``
    schedule        other limits by the hour; see ``schedule.py``
    retry           a policy, the name of its kind, or a function (attempt) -> seconds
    timeout         seconds that one attempt may run, where the call does not say; None: as long as it likes
    process         run a plain handler in processes
    drain           seconds that running handlers may take to finish after ``stop``
    name            for logs and threads
    heartbeat       seconds between two beats; None: a third of the lease
    listener        gets the events of ``events.py``
    zombies         how many handlers that did not stop when told to may still be running, before the pool gives
                    up; None: twice the workers, at least 16
    unserved_grace  seconds from its first enqueue for which a job may wait for a worker that knows its task
    prefetch        how many jobs at most may be fetched ahead of those that begin at once; "auto": as many as begin
                    within a moment, on a durable queue, and none on one in memory; see ``ahead.py``
    recycle_jobs    how many jobs a worker process does before it is replaced
    recycle_memory  bytes of memory from which a worker process is replaced, after its job
    """

    def __init__(
        self,
        queue: Queue | AsyncQueue,
        handler: Handler | Resolver,
        workers: int | None = None,
        *,
        balance: Balance | None = None,
        schedule: Schedule | None = None,
        retry: RetryPolicy | Callable[[int], float] | str | None = None,
        timeout: float | None = None,
        process: bool = False,
        drain: float = 25.0,
        name: str | None = None,
        heartbeat: float | None = None,
        listener: Listener | None = None,
        zombies: int | None = None,
        unserved_grace: float = UNSERVED_GRACE,
        prefetch: int | Literal["auto"] = "auto",
        recycle_jobs: int | None = None,
        recycle_memory: int | None = None,
    ) -> None:
        self._queue: AsyncQueue = queue.as_async if isinstance(queue, Queue) else queue
        self._store: Queue = queue if isinstance(queue, Queue) else queue.as_sync
        self._resolver = resolver(handler, process)
        self._options = Options.make(
            queue=queue.settings.queue,
            lease=queue.settings.lease,
            workers=workers,
            balance=balance,
            schedule=schedule,
            recycle_jobs=recycle_jobs,
            recycle_memory=recycle_memory,
            retry=retry,
            timeout=timeout,
            drain=drain,
            name=name,
            heartbeat=heartbeat,
            listener=listener,
            zombies=zombies,
            unserved_grace=unserved_grace,
            prefetch=prefetch,
            durable=queue.capabilities.durable,
        )
        self._guard = threading.RLock()  # re-entrant: a signal handler may interrupt its holder
        self._engine: Engine | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._early: list[tuple[float, str]] = []
        self._balance = self._options.balance
        self._size: tuple[int | None, Balance | None] = (None, None)

    @property
    def balance(self) -> Balance | None:
        """Between which limits its size changes outside the schedule's ranges, as ``resize`` last left them; None for
        a pool of a fixed size without a schedule."""
        return self._balance

    @property
    def schedule(self) -> Schedule | None:
        """Its limits by the hour; None: the same at any time."""
        return self._options.schedule

    def run(self) -> Summary:
        """Work until ``stop``, a signal (in the main thread), or the end of a closed queue. Blocks. Raises
        PoolFailed when the pool cannot work any more."""
        with signals.handled(self._on_signal):
            return drive(self.run_async())

    async def run_async(self) -> Summary:
        """The same on the caller's event loop; signals are the caller's business. When it is cancelled, it
        cancels what runs, gives it back, and ends."""
        engine = self._start()
        try:
            await engine.work()
            await engine.wind_up()
        except asyncio.CancelledError:
            engine.stop(0.0, "cancelled")
            await engine.wind_up()
            raise
        finally:
            await engine.close()
        if engine.error is not None:
            raise engine.error
        return engine.summary()

    def stop(self, drain: float | None = None) -> None:
        """Take no more jobs; let what runs finish within ``drain`` seconds (None: the pool's setting); then
        cancel the rest and give it back. A second call ends at once.

        Returns at once; from any thread, task or signal handler. Before ``run`` it makes ``run`` return."""
        if drain is not None:
            check.duration("drain", drain)
        self._ask(self._options.drain if drain is None else drain, "stopped")

    def resize(self, workers: int | None = None, *, min: int | None = None, max: int | None = None) -> None:
        """Have another number of workers from now on: ``workers`` of them, 0 included, whatever the load and the
        hour; or, in a balanced pool, a number between ``min`` and ``max``, outside of the schedule's ranges. What is
        not given stays as it is. A busy worker that is too many ends when its job does.

        Returns at once; from any thread, task or signal handler. Bad values raise ConfigError, as do limits for a
        pool of a fixed size."""
        with self._guard:
            if workers is not None:
                if min is not None or max is not None:
                    raise ConfigError("resize: give workers, or min and max")
                check.whole("workers", workers, 0, MOST)
                self._size = (workers, None)
            elif self._balance is None:
                raise ConfigError("resize: this pool has a fixed size: give workers, or make it with balance=")
            else:
                given = {name: value for name, value in (("min", min), ("max", max)) if value is not None}
                self._balance = msgspec.structs.replace(self._balance, **given)
                self._size = (None, self._balance)
            if self._engine is None or self._loop is None:
                return
            engine, loop, size = self._engine, self._loop, self._size
        try:
            loop.call_soon_threadsafe(engine.resize, *size)
        except RuntimeError:
            pass  # its loop is closed: it has stopped

    def grow(self, by: int) -> None:
        """So many workers more (or fewer, negative), at least one; in a balanced pool, so many at most. For signals
        and buttons: whoever knows the number says ``resize``."""
        with self._guard:
            fixed = self._size[0]
            if fixed is None and self._balance is not None:
                most = min(max(self._balance.max + by, 1), MOST)
                self.resize(min=min(self._balance.min, most), max=most)
            else:
                workers = self._options.workers if fixed is None else fixed
                self.resize(min(max(workers + by, 1), MOST))

    def health(self) -> Health:
        """Whether it works, and why not; from any thread."""
        engine = self._engine
        if engine is None:
            return Health(ok=False, reasons=("not started",), phase="new")
        roster = engine.floor.foreman.roster
        reasons = [] if engine.error is None else [str(engine.error)]
        if engine.phase == "stopped":
            reasons = reasons or ["stopped"]
        else:
            reasons += engine.complaints()
        return Health(
            ok=not reasons,
            reasons=tuple(reasons),
            phase=engine.phase,
            active=roster.active,
            asleep=len(roster.asleep),
            running=len(engine.heart.held),
            ahead=len(engine.floor.ahead.waiting),
            zombies=engine.floor.zombies,
            fetch_age=engine.fetcher.pulse.age,
            heartbeat_age=engine.heart.pulse.age,
            loop_lag=engine.watch.lag,
        )

    def _start(self) -> Engine:
        with self._guard:
            if self._engine is not None:
                raise ConfigError("pool: it has been run already; make a new one")
            self._engine = engine = Engine(self._queue, self._store, self._resolver, self._options)
            self._loop = asyncio.get_running_loop()
            engine.resize(*self._size)
            for drain, reason in self._early:
                engine.stop(drain, reason)
        return engine

    def _ask(self, drain: float, reason: str) -> None:
        with self._guard:
            if self._engine is None or self._loop is None:
                self._early.append((drain, reason))
                return
        try:
            self._loop.call_soon_threadsafe(self._engine.stop, drain, reason)
        except RuntimeError:
            pass  # its loop is closed: it has stopped

    def _on_signal(self, name: str) -> None:
        log.warning(
            "%s: taking no more jobs, waiting up to %g s for those that run; once more to end at once",
            name,
            self._options.drain,
        )
        self._ask(self._options.drain, name)
