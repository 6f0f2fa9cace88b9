"""Headrace and its peers on PostgreSQL, each behind the same few calls, set as its own manual advises for speed.

Imported in a process of its own for each system (see ``_pg_child.py``), perhaps of another Python: nothing but the
standard library is imported before a system is chosen.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

WORKERS = 500
BULK = 5_000
"""Jobs that are handed over in one call."""

Started = Callable[[str], object]


class System(NamedTuple):
    """``one`` returns when the job is committed, ``bulk`` when all of them are. ``work`` runs a worker with an async
    handler that does nothing but call ``started`` with the job's text."""

    install: Callable[[], Awaitable[object]]
    one: Callable[[str], Awaitable[object]]
    bulk: Callable[[Sequence[str]], Awaitable[object]]
    work: Callable[[Started], AbstractAsyncContextManager[None]]


Open = Callable[[str], AbstractAsyncContextManager[System]]


@asynccontextmanager
async def headrace(url: str) -> AsyncIterator[System]:
    import headrace

    async with headrace.connect_async(url, capacity=10_000_000) as jobs:

        @asynccontextmanager
        async def work(started: Started) -> AsyncIterator[None]:
            async def handle(job: headrace.Job) -> None:
                started(job.payload.decode())

            pool = headrace.Pool(jobs, handle, WORKERS)
            async with _running(pool.run_async()) as running:
                yield
                pool.stop()
                await running

        yield System(
            jobs.stats,
            lambda text: jobs.enqueue(headrace.Job(text.encode())),
            lambda texts: jobs.enqueue_many([headrace.Job(text.encode()) for text in texts]),
            work,
        )


@asynccontextmanager
async def pgqueuer(dsn: str) -> AsyncIterator[System]:
    """asyncpg is the driver that its manual begins with."""
    connection = await _import("asyncpg").connect(dsn)
    queuer = _import("pgqueuer").PgQueuer.from_asyncpg_connection(connection)

    @asynccontextmanager
    async def work(started: Started) -> AsyncIterator[None]:
        @queuer.entrypoint("nothing")  # type: ignore[untyped-decorator] # the peer is imported only where it is installed
        async def nothing(job: Any) -> None:
            started(job.payload.decode())

        async with _running(queuer.run(batch_size=WORKERS)) as running:
            yield
            queuer.shutdown.set()
            await running

    yield System(
        queuer.queries.install,
        lambda text: queuer.queries.enqueue("nothing", text.encode()),
        lambda texts: queuer.queries.enqueue(
            ["nothing"] * len(texts), [text.encode() for text in texts], [0] * len(texts)
        ),
        work,
    )
    await connection.close()


@asynccontextmanager
async def procrastinate(dsn: str) -> AsyncIterator[System]:
    """It claims one job at a time, so what helps is several at once, and a connection for each."""
    module = _import("procrastinate")
    handler: Started = print
    async with module.App(connector=module.PsycopgConnector(conninfo=dsn, max_size=20)).open_async() as app:

        @app.task(name="nothing")  # type: ignore[untyped-decorator] # as above
        async def nothing(text: str) -> None:
            handler(text)

        @asynccontextmanager
        async def work(started: Started) -> AsyncIterator[None]:
            nonlocal handler
            handler = started
            worker = app.run_worker_async(concurrency=20, install_signal_handlers=False)
            async with _running(worker):
                yield

        yield System(
            app.schema_manager.apply_schema_async,
            lambda text: nothing.defer_async(text=text),
            lambda texts: nothing.batch_defer_async(*({"text": text} for text in texts)),
            work,
        )


chancy_started: Started = print


async def chancy_nothing(*, text: str) -> None:
    """Chancy finds its handlers by the name of their module."""
    chancy_started(text)


@asynccontextmanager
async def chancy(dsn: str) -> AsyncIterator[System]:
    module = _import("chancy")
    queue = module.Queue("default", concurrency=WORKERS, executor=module.Chancy.Executor.Async, eager_polling=True)
    job = module.Job.from_func(chancy_nothing)

    async with module.Chancy(dsn) as app:

        async def install() -> None:
            await app.migrate()
            await app.declare(queue)

        async def bulk(texts: Sequence[str]) -> None:
            async for _ in app.push_many([job.with_kwargs(text=text) for text in texts], batch_size=BULK):
                pass

        @asynccontextmanager
        async def work(started: Started) -> AsyncIterator[None]:
            global chancy_started
            chancy_started = started
            async with module.Worker(app, register_signal_handlers=False, shutdown_timeout=1):
                yield

        yield System(install, lambda text: app.push(job.with_kwargs(text=text)), bulk, work)


@asynccontextmanager
async def oban(dsn: str) -> AsyncIterator[System]:
    module, schema = _import("oban"), _import("oban.schema")
    handler: Started = print
    pool = await module.Oban.create_pool(dsn)

    @module.job(queue="default")  # type: ignore[untyped-decorator] # as above
    async def nothing(text: str) -> None:
        handler(text)

    @asynccontextmanager
    async def work(started: Started) -> AsyncIterator[None]:
        nonlocal handler
        handler = started
        async with module.Oban(pool=pool, name="worker", queues={"default": WORKERS}, shutdown_grace_period=1):
            yield

    client = module.Oban(pool=pool)
    yield System(
        lambda: schema.install(pool),
        lambda text: client.enqueue(nothing.new(text)),
        lambda texts: client.enqueue_many([nothing.new(text) for text in texts]),
        work,
    )
    await pool.close()


@dataclass
class Nothing:
    """Awa tells its jobs apart by the class of their arguments."""

    text: str


@asynccontextmanager
async def awa(dsn: str) -> AsyncIterator[System]:
    async with _import("awa", "awa-pg").AsyncClient(dsn, 20) as client:

        @asynccontextmanager
        async def work(started: Started) -> AsyncIterator[None]:
            @client.task(Nothing)  # type: ignore[untyped-decorator] # as above
            async def nothing(job: Any) -> None:
                started(job.args.text)

            await client.start([("default", WORKERS)], poll_interval_ms=50)
            yield
            await client.shutdown()

        async def install() -> None:
            await client.migrate()
            await client.install_queue_storage()

        yield System(
            install,
            lambda text: client.insert(Nothing(text)),
            lambda texts: client.enqueue_many_copy([Nothing(text) for text in texts]),
            work,
        )


OURS = "headrace"
SYSTEMS: dict[str, Open] = {
    OURS: headrace,
    "pgqueuer": pgqueuer,
    "procrastinate": procrastinate,
    "chancy": chancy,
    "oban": oban,
    "awa": awa,
}
UVLOOP = ("pgqueuer", "oban")
"""Those whose own command runs on uvloop."""


class Missing(Exception):
    """A system that is not installed, with what to do."""


def _import(name: str, package: str = "") -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = package or name.partition(".")[0]
        raise Missing(f"not installed for this Python; pip install {package} ({error})") from None


@asynccontextmanager
async def _running(worker: Any) -> AsyncIterator[asyncio.Task[Any]]:
    """A worker that runs until it is cancelled, or ends of itself."""
    task = asyncio.ensure_future(worker)
    yield task
    task.cancel()
    await asyncio.wait([task])
