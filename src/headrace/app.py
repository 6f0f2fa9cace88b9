"""An app: tasks under one URL. Importing a module that makes one opens nothing; the first use does.

For producers it is ``task.enqueue``; for a worker's pool it is a resolver: from a job to the call to make.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, overload

from .clock import Clock, SystemClock
from .connect import connect
from .errors import ConfigError, InvalidJob, QueueClosed
from .job import Job
from .pool.call import Call, Unserved
from .pool.context import Context
from .pool.retry import RetryPolicy
from .queue import Queue
from .tasks.codec import Unfit, open_envelope
from .tasks.naming import default_name
from .tasks.outside import Outside
from .tasks.task import Task, TaskSettings, Upgrade

if TYPE_CHECKING:
    from .pool import Pool

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger(__name__)

DEFAULT_URL = "sqlite:///headrace.db"


class Decorate:
    """``@app.task(...)``: waits for the function. A function whose first parameter is the Context is
    enqueued without it."""

    def __init__(self, app: App, settings: Mapping[str, Any]) -> None:
        self._app = app
        self._settings = settings

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R]) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> Task[P, R]: ...
    def __call__(self, function: Any) -> Task[Any, Any]:
        return self._app._add(function, self._settings)


class App:
    """Tasks, and the queues they go to.

    ``url`` is what ``headrace.connect`` takes; where it is not given, HEADRACE_URL at the first use, else
    ``sqlite:///headrace.db``. ``outside`` is where arguments are kept that are larger than ``outside_above`` bytes:
    a folder that all producers and workers share, as a URL of fsspec. The settings are those of ``connect``, for
    every queue of the app. Safe to share between threads.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        outside: str | None = None,
        outside_above: int = 65_536,
        **queue_settings: Any,
    ) -> None:
        if url is not None and (not isinstance(url, str) or not url):
            raise ConfigError(f"url: {type(url).__name__} is not a URL such as {DEFAULT_URL}")
        if "queue" in queue_settings:
            raise ConfigError("queue: each task names its own: @app.task(queue=…)")
        self._url = url
        self.outside = None if outside is None else Outside(outside, outside_above)
        self._settings = queue_settings
        self._tasks: dict[str, Task[Any, Any]] = {}
        self._queues: dict[str, Queue] = {}
        self._lock = threading.Lock()
        self._closed = False
        self.clock: Clock = queue_settings.get("clock") or SystemClock()

    @property
    def url(self) -> str:
        """Where the queues are. May hold a password: for ``connect``, not for people."""
        return self._url or os.environ.get("HEADRACE_URL") or DEFAULT_URL

    @property
    def tasks(self) -> Mapping[str, Task[Any, Any]]:
        """Every task by its name."""
        return MappingProxyType(self._tasks)

    @property
    def queues(self) -> tuple[str, ...]:
        """The names of the queues that tasks go to, sorted."""
        return tuple(sorted({task.settings.queue for task in self._tasks.values()}))

    @overload
    def task(self, function: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(
        self,
        *,
        name: str | None = None,
        queue: str = "default",
        max_attempts: int | None = None,
        timeout: float | None = None,
        priority: int = 0,
        retry: RetryPolicy | Callable[[int], float] | str | None = None,
        process: bool = False,
        version: int = 1,
        upgrade: Upgrade | None = None,
        deadline: float | None = None,
    ) -> Decorate: ...
    def task(self, function: Any = None, **settings: Any) -> Any:
        """Register a function: ``@app.task`` or ``@app.task(queue="mail", timeout=20)``.

        The settings are described in ``TaskSettings``. Raises ConfigError for a bad setting or a name that
        is taken, TypeError for what cannot be a task.
        """
        decorate = Decorate(self, settings)
        return decorate if function is None else decorate(function)

    def _add(self, function: Any, given: Mapping[str, Any]) -> Task[Any, Any]:
        unknown = [each for each in given if each not in TaskSettings.__struct_fields__]
        if unknown:
            known = ", ".join(TaskSettings.__struct_fields__)
            raise ConfigError(f"{unknown[0]}: no such setting of a task; the settings are {known}")
        name = given.get("name")
        settings = TaskSettings(**{**given, "name": default_name(function) if name is None else name})
        task: Task[Any, Any] = Task(self, function, settings)
        with self._lock:
            if settings.name in self._tasks:
                raise ConfigError(f"name: there is a task {settings.name!r} already; say @app.task(name=…)")
            self._tasks[settings.name] = task
        return task

    def queue(self, name: str = "default") -> Queue:
        """The queue of that name, opened at its first use and kept. QueueClosed after ``close``."""
        with self._lock:
            if self._closed:
                raise QueueClosed("the app is closed")
            if name not in self._queues:
                self._queues[name] = connect(self.url, queue=name, **self._settings)
            return self._queues[name]

    async def queue_async(self, name: str = "default") -> Queue:
        """``queue`` for async callers: opening one may have to wait for a disk or a server."""
        opened = self._queues.get(name)
        return await asyncio.to_thread(self.queue, name) if opened is None else opened

    def close(self) -> None:
        """Close every queue that was opened. The tasks stay, and can still be called directly."""
        with self._lock:
            self._closed = True
            queues, self._queues = self._queues, {}
        with ExitStack() as stack:  # one that cannot be closed keeps none of the others open
            for queue in queues.values():
                stack.callback(queue.close)

    def __enter__(self) -> Self:
        self._closed = False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def resolve(self, job: Job) -> Call:
        """The call for a job. Unserved where another worker may know more: its task, or that version of it.
        InvalidJob, a failed attempt, where nobody can read it."""
        try:
            envelope = open_envelope(job.payload)
            task = self._tasks.get(envelope.task)
            if task is None:
                raise Unserved(f"task {envelope.task!r} is not known to this worker")
            return task.call(envelope)
        except Unfit as unfit:
            raise InvalidJob(job.id, str(unfit)) from None

    def pool(self, queue: str = "default", workers: int | None = None, **pool_settings: Any) -> Pool:
        """A worker pool for one queue that runs these tasks. The settings are those of ``Pool``. A queue that no task
        goes to is served all the same, for jobs may be enqueued by hand, but logged as a warning."""
        from .pool import Pool  # only a worker needs what it brings along: threads, processes, signals

        if not self._tasks:
            raise ConfigError("this app has no tasks to run; import the modules that define them first")
        self.check()
        opened = self.queue(queue)
        if queue not in self.queues:
            log.warning("no task of this app goes to queue %r; its tasks go to %s", queue, ", ".join(self.queues))
        return Pool(opened, self, workers=workers, **pool_settings)

    def check(self) -> None:
        """Raise what is wrong with a task and could not be known before its module was loaded."""
        for task in self._tasks.values():
            task.check()

    def __repr__(self) -> str:
        scheme = self.url.partition(":")[0]  # the rest may hold a password
        return f"<App {scheme}, {len(self._tasks)} tasks>"
