"""A task: a function that can still be called, and that can be called later, elsewhere, by a worker.

``mail(to="a")`` runs it here; ``mail.enqueue(to="a")`` makes a job of the same call, typed the same way. What
the function returns is ignored when a worker runs it: there is no result store, so let it write what matters.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeAlias, TypeVar

import msgspec

from .. import check
from ..clock import to_datetime
from ..errors import ConfigError, InvalidJob
from ..ids import new_id
from ..job import Job
from ..pool.call import Call, Kind, Unserved, kind_of
from ..pool.retry import Retries, RetryPolicy, retries
from .claim import fetching, sent
from .codec import Envelope, Unfit
from .signature import Signature, refuse_unrunnable

if TYPE_CHECKING:
    from ..app import App
    from ..queue import AsyncQueue, AsyncWithin, Queue, Within

P = ParamSpec("P")
R = TypeVar("R", covariant=True)

Upgrade: TypeAlias = Callable[[dict[str, Any], int], dict[str, Any]]
"""From the arguments of an older payload, as plain JSON values, and its version, to today's arguments."""


NO_CONNECTION = object()
"""In no transaction of the caller's; a connection that is None by mistake is told apart from that."""


class Handle(msgspec.Struct, frozen=True):
    """What a caller keeps of an enqueued job: enough to find, cancel or mention it."""

    id: str
    queue: str
    task: str


class TaskSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What ``@app.task`` takes. A bad one raises ConfigError with its name, value and range."""

    name: str
    """How payloads name the task: it must stay the same for as long as jobs wait. ``module:function``."""
    queue: str = "default"
    max_attempts: int | None = None
    """How often a job may be leased, the first time included; None: the queue's setting."""
    timeout: float | None = None
    """Seconds that one attempt may run; None: the pool's setting."""
    priority: int = 0
    retry: RetryPolicy | Callable[[int], float] | str | None = None
    """Delays between attempts: a policy, its name, or a function of the attempt; None: the pool's setting."""
    process: bool = False
    """Run in a process of its own (for CPU-bound or crash-prone work) instead of a thread."""
    version: int = 1
    """Raise it when the arguments change; workers that do not know it yet leave such jobs to those that do."""
    upgrade: Upgrade | None = None
    """Brings the arguments of older versions up to this one."""
    deadline: float | None = None
    """Seconds after enqueueing by which a job must have started; None: no limit."""

    def __post_init__(self) -> None:
        name = self.name
        if not isinstance(name, str) or not 0 < len(name) <= 255 or not name.isprintable() or " " in name:
            raise ConfigError(f"name: {name!r} is not 1 to 255 printable characters without spaces")
        what = f"task {name!r}: "
        check.identifier(f"{what}queue", self.queue)
        if self.max_attempts is not None:
            check.whole(f"{what}max_attempts", self.max_attempts, 1, 1_000_000)
        if self.timeout is not None:
            check.duration(f"{what}timeout", self.timeout, zero=False)
        check.whole(f"{what}priority", self.priority, -(2**31), 2**31 - 1)
        check.flag(f"{what}process", self.process)
        check.whole(f"{what}version", self.version, 1, 2**31 - 1)
        if self.upgrade is not None and not callable(self.upgrade):
            raise ConfigError(f"{what}upgrade: {self.upgrade!r} is not a function (args, version) -> args")
        if self.deadline is not None:
            check.duration(f"{what}deadline", self.deadline)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What one call may say differently from its task; the queue checks it when the job is enqueued."""

    delay: float = 0.0
    run_at: datetime | None = None
    priority: int | None = None
    id: str | None = None
    deadline: datetime | float | None = None
    """The latest start: a moment, or seconds after enqueueing."""
    max_attempts: int | None = None


class Bound(Generic[P]):
    """A task with options for its next calls; reusable, unless it fixes an id."""

    __slots__ = ("_connection", "_options", "_task")

    def __init__(self, task: Task[P, Any], options: Options, connection: object = NO_CONNECTION) -> None:
        self._task = task
        self._options = options
        self._connection: Any = connection

    def within(self, connection: object) -> Bound[P]:
        """The same, but that ``enqueue`` and its like are part of the transaction of ``connection``: see
        ``Queue.within``. An asynchronous connection takes the ``…_async`` calls."""
        return Bound(self._task, self._options, connection)

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> Job:
        """The job that ``enqueue`` would enqueue, with all its arguments inside. TypeError for a call that Python
        would refuse, InvalidJob for an argument of the wrong type or one that would not come back from JSON as it
        is."""
        task, options = self._task, self._options
        settings = task.settings
        bound = task.signature.bind(args, kwargs)
        id = new_id() if options.id is None else options.id
        try:
            payload = task.signature.codec.encode(settings.name, settings.version, bound)
        except Unfit as unfit:
            raise InvalidJob(id, f"task {settings.name!r}: {unfit}") from None
        return Job(
            payload=payload,
            id=id,
            priority=settings.priority if options.priority is None else options.priority,
            delay=options.delay,
            run_at=options.run_at,
            deadline=self._deadline(settings.deadline if options.deadline is None else options.deadline),
            max_attempts=settings.max_attempts if options.max_attempts is None else options.max_attempts,
        )

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle:
        """Enqueue the call. Errors of ``job`` and of the queue: QueueFull, DuplicateJob, QueueClosed; Unavailable
        where its arguments belong outside and cannot be written there."""
        job, queue = self.job(*args, **kwargs), self._blocking()
        with sent(self._task.app.outside, self._task.settings.queue, [job]) as jobs:
            return self._handle(queue.enqueue(jobs[0]))

    async def enqueue_async(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle:
        """``enqueue`` for async callers: waits without blocking the event loop."""
        job, queue = self.job(*args, **kwargs), await self._awaited()
        async with sent(self._task.app.outside, self._task.settings.queue, [job]) as jobs:
            return self._handle(await queue.enqueue(jobs[0]))

    def enqueue_many(self, calls: Iterable[Mapping[str, Any]]) -> list[Handle]:
        """Enqueue one call for each mapping of arguments: all of them or none, in one round trip.

        These arguments are checked when it runs, not by a type checker."""
        made, queue = self._jobs(calls), self._blocking()
        with sent(self._task.app.outside, self._task.settings.queue, made) as jobs:
            return [self._handle(job) for job in queue.enqueue_many(jobs)]

    async def enqueue_many_async(self, calls: Iterable[Mapping[str, Any]]) -> list[Handle]:
        """``enqueue_many`` for async callers."""
        made, queue = self._jobs(calls), await self._awaited()
        async with sent(self._task.app.outside, self._task.settings.queue, made) as jobs:
            return [self._handle(job) for job in await queue.enqueue_many(jobs)]

    def _jobs(self, calls: Iterable[Mapping[str, Any]]) -> list[Job]:
        make: Callable[..., Job] = self.job
        return [make(**call) for call in calls]

    def _blocking(self) -> Queue | Within:
        queue = self._task.app.queue(self._task.settings.queue)
        if self._connection is NO_CONNECTION:
            return queue
        inside: Within | AsyncWithin = queue.within(self._connection)
        if inside.awaited is True:
            raise ConfigError("within: the connection is asynchronous: await enqueue_async or enqueue_many_async")
        return inside

    async def _awaited(self) -> AsyncQueue | AsyncWithin:
        queue = (await self._task.app.queue_async(self._task.settings.queue)).as_async
        if self._connection is NO_CONNECTION:
            return queue
        inside: Within | AsyncWithin = queue.within(self._connection)
        if inside.awaited is False:
            raise ConfigError("within: the connection blocks: call enqueue or enqueue_many, without await")
        return inside

    def _handle(self, job: Job) -> Handle:
        return Handle(job.id, self._task.settings.queue, self._task.name)

    def _deadline(self, given: datetime | float | None) -> datetime | None:
        if given is None or isinstance(given, datetime):
            return given
        micros = check.duration("deadline", given)
        return to_datetime(self._task.app.clock.wall()) + timedelta(microseconds=micros)


class Task(Generic[P, R]):
    """What ``@app.task`` leaves in the function's place."""

    # Set by update_wrapper, as on the function.
    __name__: str
    __qualname__: str
    __wrapped__: Callable[P, R]

    def __init__(self, app: App, function: Callable[P, R], settings: TaskSettings) -> None:
        what = f"task {settings.name!r}"
        self._kind = refuse_unrunnable(function, what)
        self.app = app
        self.settings = settings
        self.function = function
        self.retry: Retries | None = None if settings.retry is None else retries(settings.retry)
        self._plain: Bound[P] = Bound(self, Options())
        # Not the function's own attributes: one called ``retry`` or ``job`` would hide ours.
        functools.update_wrapper(self, function, updated=())
        self._signature: Signature | None = None
        try:
            self._signature = Signature(function, what)
        except NameError:
            pass  # an annotation names what is defined further down the module: read at the first use

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def signature(self) -> Signature:
        """Its parameters. ConfigError where an annotation cannot be resolved."""
        if self._signature is None:
            try:
                self._signature = Signature(self.function, f"task {self.name!r}")
            except NameError as error:
                raise ConfigError(
                    f"task {self.name!r}: an annotation cannot be resolved: {error}; import it at run time, "
                    "not under `if TYPE_CHECKING`"
                ) from None
        return self._signature

    @functools.cached_property
    def kind(self) -> Kind:
        """Where it runs. TypeError for a process task that another process cannot import: only known once
        its module is loaded, so a worker asks when it starts."""
        return kind_of(self, process=True) if self.settings.process else self._kind

    def call(self, stored: Envelope) -> Call:
        """The call that a worker makes. Raises Unserved for what another worker may be able to read, a newer version
        or arguments kept outside, and Unfit for arguments that nobody can read."""
        known = self.settings.version
        if stored.v > known:
            raise Unserved(
                f"task {self.name!r} is known to this worker in version {known}, the job has version {stored.v}"
            )
        function: Callable[..., Any]
        positional: tuple[Any, ...]
        named: dict[str, Any] = {}
        if isinstance(stored.args, msgspec.Raw):
            # The task itself knows how to put the Context in; a process imports it by its name anyway.
            function = self if self.signature.context or self.settings.process else self.function
            try:
                positional, named = self.arguments(stored.v, stored.args)
            except Unfit as unfit:
                raise Unfit(f"task {self.name!r}: {unfit}") from None
        elif self.app.outside is None:
            raise Unserved(f"task {self.name!r}: arguments are kept outside, and this worker's app has no outside=")
        else:
            function, positional = fetching(self, stored)
        return Call(
            function=function,
            args=positional,
            kwargs=named,
            kind=self.kind,
            name=self.name,
            timeout=self.settings.timeout,
            retry=self.retry,
        )

    def arguments(self, version: int, text: bytes | msgspec.Raw) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Stored arguments of that version as a call of today takes them. Raises Unfit."""
        known, codec = self.settings.version, self.signature.codec
        if version == known:
            return self.signature.spread(codec.decode(text))
        if self.settings.upgrade is None:
            raise Unfit(f"the job has version {version}, this is version {known}, and no upgrade= is given")
        return self.signature.spread(codec.convert(self.settings.upgrade(msgspec.json.decode(text), version)))

    def check(self) -> None:
        """What can only be known once its module is loaded: ConfigError or TypeError, for a worker's start."""
        _ = self.signature, self.kind

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, here and now; inside a handler a missing Context is the running one."""
        function: Callable[..., R] = self.function
        positional, named = self.signature.inject(args, kwargs)
        return function(*positional, **named)

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> Job:
        """The job that ``enqueue`` would enqueue; nothing is stored."""
        return self._plain.job(*args, **kwargs)

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle:
        """Enqueue this call; see ``Bound.enqueue`` for its errors."""
        return self._plain.enqueue(*args, **kwargs)

    async def enqueue_async(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle:
        """``enqueue`` for async callers."""
        return await self._plain.enqueue_async(*args, **kwargs)

    def enqueue_many(self, calls: Iterable[Mapping[str, Any]]) -> list[Handle]:
        """Enqueue one call for each mapping of arguments: all of them or none."""
        return self._plain.enqueue_many(calls)

    async def enqueue_many_async(self, calls: Iterable[Mapping[str, Any]]) -> list[Handle]:
        """``enqueue_many`` for async callers."""
        return await self._plain.enqueue_many_async(calls)

    def within(self, connection: object) -> Bound[P]:
        """The same task, enqueued inside the transaction of ``connection``; see ``Bound.within``."""
        return self._plain.within(connection)

    def options(
        self,
        *,
        delay: float = 0.0,
        run_at: datetime | None = None,
        priority: int | None = None,
        id: str | None = None,
        deadline: datetime | float | None = None,
        max_attempts: int | None = None,
    ) -> Bound[P]:
        """The same task with other options for the calls made through what this returns."""
        return Bound(self, Options(delay=delay, run_at=run_at, priority=priority, id=id, deadline=deadline,
                                   max_attempts=max_attempts))  # fmt: skip

    def __repr__(self) -> str:
        return f"<task {self.name!r} on queue {self.settings.queue!r}>"
