"""From a command line or a file to the pools of a worker, their queues opened."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import msgspec

from ..app import App
from ..connect import connect
from ..errors import ConfigError
from ..loading import load
from ..pool import Pool
from ..pool.config import Plan, read_plans
from ..queue import Queue
from .progress import Tally
from .session import Session
from .stores import is_new, loaded, warn_if_private

DRAIN = 25.0


class Fleet(msgspec.Struct):
    """The pools by their names, and what the command has to know of them."""

    pools: dict[str, Pool]
    queues: list[Queue]
    tally: Tally
    drain: float
    """Seconds, of the pool that may take longest."""


def of_app(
    session: Session,
    stack: ExitStack,
    path: str,
    names: Sequence[str],
    lease: float | None,
    size: dict[str, Any],
    drain: float | None,
) -> Fleet:
    """One pool for each queue named, else for each that the app's tasks go to."""
    app = _app(session, stack, path)
    for name in names:
        _doubt(session, path, app, name)
    queues = {name: _queue_of(stack, app, name, lease) for name in names or app.queues}
    warn_if_private(session, queues.values())
    for queue in queues.values():
        queue.stats()  # a store that cannot be used is told at once, and not waited for
    fleet = Fleet(pools={}, queues=list(queues.values()), tally=Tally(), drain=DRAIN if drain is None else drain)
    for name, queue in queues.items():
        fleet.pools[name] = Pool(queue, app, drain=fleet.drain, listener=fleet.tally, **size)
    how_many = _how_many(size)
    session.warn(f"worker {path} on {session.shown_url}: {how_many} at once from {', '.join(queues)}; Ctrl-C ends it")
    return fleet


def of_file(session: Session, stack: ExitStack, path: str) -> Fleet:
    """The pools of a TOML file. All of it is read, imported and opened before any pool is made."""
    plans = read_plans(path)
    fleet = Fleet(pools={}, queues=[], tally=Tally(), drain=0.0)
    given, apps = session.given_url, dict[str, App]()
    handlers: list[Any] = []
    for plan in plans:
        session.given_url = given  # an app that names its own URL speaks for itself alone
        with plan.blamed():
            if plan.app is not None:
                if plan.app not in apps:
                    apps[plan.app] = _app(session, stack, plan.app)
                app = apps[plan.app]
                handlers.append(app)
                _doubt(session, plan.app, app, plan.queue)
                fleet.queues.append(_queue_of(stack, app, plan.queue, plan.lease))
            else:
                handlers.append(load(str(plan.handler)))
                lease = {} if plan.lease is None else {"lease": plan.lease}
                fleet.queues.append(stack.enter_context(connect(session.url, queue=plan.queue, **lease)))
    warn_if_private(session, fleet.queues)
    for queue in fleet.queues:
        queue.stats()
    for plan, queue, handler in zip(plans, fleet.queues, handlers, strict=True):
        fleet.pools[plan.name] = _pool(plan, queue, handler, fleet.tally)
    fleet.drain = max(plan.settings.get("drain", DRAIN) for plan in plans)
    shown = ", ".join(f"{plan.name} ({_how_many(plan.settings)})" for plan in plans)
    session.warn(f"worker {path}: {shown}; Ctrl-C ends it")
    return fleet


def _pool(plan: Plan, queue: Queue, handler: Any, tally: Tally) -> Pool:
    with plan.blamed():
        return Pool(queue, handler, listener=tally, **plan.settings)


def _app(session: Session, stack: ExitStack, path: str) -> App:
    app = loaded(session, path)
    if not app.tasks:
        raise ConfigError(f"{path} has no tasks to run; import the modules that define them first")
    app.check()
    stack.enter_context(app)
    return app


def _doubt(session: Session, path: str, app: App, name: str) -> None:
    """A queue that no task goes to is a slip of the pen, unless somebody enqueued there none the less."""
    if name in app.queues:
        return
    stranger = f"no task of {path} goes to queue {name!r}; its tasks go to {', '.join(app.queues)}"
    if is_new(app.url, name):
        raise ConfigError(stranger)
    session.warn(stranger)


def _queue_of(stack: ExitStack, app: App, name: str, lease: float | None) -> Queue:
    """The app's own queue, or the same with another lease."""
    queue = app.queue(name)
    if lease is None:
        return queue
    if not queue.capabilities.durable:
        raise ConfigError("lease: a memory queue lives in its app; write App(lease=…) there")
    return stack.enter_context(connect(app.url, **(msgspec.structs.asdict(queue.settings) | {"lease": lease})))


def _how_many(size: dict[str, Any]) -> str:
    balance = size.get("balance")
    return str(size.get("workers", 8)) if balance is None else f"{balance.min} to {balance.max}"
