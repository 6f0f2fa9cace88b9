"""The worker: one pool for each queue of an app, in one process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from ..errors import ConfigError
from .enqueue import Seconds
from .failure import WORKER, Failure
from .session import Session, common, pass_session
from .stores import loaded

if TYPE_CHECKING:
    from ..app import App
    from ..queue import Queue


@click.command()
@click.argument("path", metavar="MODULE:APP")
@click.option("--queue", "names", multiple=True, metavar="NAME", help="Serve only this queue; may be repeated.")
@click.option("--workers", type=click.IntRange(1, 100_000), default=8, show_default=True, help="Jobs at once, a queue.")
@click.option("--drain", type=Seconds(), default=25.0, show_default=True, metavar="SECONDS",
              help="How long what runs may take to finish after the first signal.")  # fmt: skip
@click.option("--lease", type=Seconds(), metavar="SECONDS",
              help="How long others do not see a job unless it is renewed; else the app's setting.")  # fmt: skip
@click.option("--burst", is_flag=True, help="End when nothing is ready and nothing runs any more.")
@common(json=False)
@pass_session
def worker(
    session: Session, path: str, names: Sequence[str], workers: int, drain: float, lease: float | None, burst: bool
) -> None:
    """Run the jobs of an app.

    Serves the queues that its tasks go to. The first SIGINT, SIGTERM or SIGHUP lets what runs finish; the second
    ends at once and gives back what runs. With --json in front (headrace --json worker …) the totals are printed
    as JSON in the end.
    """
    app = loaded(session, path)
    if not app.tasks:
        raise ConfigError(f"{path} has no tasks to run; import the modules that define them first")
    app.check()
    with ExitStack() as stack:
        stack.enter_context(app)
        queues = {name: _queue(stack, app, name, lease) for name in names or app.queues}
        for name, queue in queues.items():
            if name not in app.queues:
                session.warn(f"no task of {path} goes to queue {name!r}; its tasks go to {', '.join(app.queues)}")
            queue.stats()  # a store that cannot be used is told at once, and not waited for
        session.warn(
            f"worker {path} on {session.shown_url}: {workers} at once from {', '.join(queues)}; Ctrl-C ends it"
        )
        _work(session, app, queues, workers, drain, burst)


def _work(session: Session, app: App, queues: dict[str, Queue], workers: int, drain: float, burst: bool) -> None:
    from ..pool import Pool, PoolFailed
    from ..pool.driver import drive
    from . import serve
    from .progress import Tally, shown

    tally = Tally()
    pools = {name: Pool(queue, app, workers, drain=drain, listener=tally) for name, queue in queues.items()}

    def stop() -> None:
        for pool in pools.values():
            pool.stop()

    with shown(session, tally), serve.signalled(stop, drain) as signals:
        try:
            summaries = drive(serve.burst(pools, queues) if burst else serve.serve(pools))
        except PoolFailed as failed:
            raise Failure(str(failed), WORKER) from failed
    session.warn(f"ended: {tally.text()}")
    if session.json:
        session.print_json(dict(zip(pools, summaries, strict=True)))
    if any(each.forced for each in summaries):
        given_back = sum(each.released for each in summaries)
        raise Failure(f"ended before all had finished; {given_back} given back", 128 + (signals[0] if signals else 15))


def _queue(stack: ExitStack, app: App, name: str, lease: float | None) -> Queue:
    """The app's own queue, or the same with another lease."""
    queue = app.queue(name)
    if lease is None:
        return queue
    import msgspec

    from ..connect import connect

    if not queue.capabilities.durable:
        raise ConfigError("lease: a memory queue lives in its app; write App(lease=…) there")
    return stack.enter_context(connect(app.url, **(msgspec.structs.asdict(queue.settings) | {"lease": lease})))
