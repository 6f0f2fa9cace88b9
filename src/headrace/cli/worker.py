"""The worker: one pool for each queue of an app, or the pools of a file, in one process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from .enqueue import Seconds
from .failure import WORKER, Failure
from .session import Session, common, pass_session

if TYPE_CHECKING:
    from ..pool import Balance
    from .fleet import Fleet

COUNT = click.IntRange(1, 100_000)


@click.command()
@click.argument("path", metavar="[MODULE:APP]", required=False)
@click.option("--config", metavar="FILE", help="Run the pools of this TOML file, in place of an app's queues.")
@click.option("--queue", "names", multiple=True, metavar="NAME", help="Serve only this queue; may be repeated.")
@click.option("--workers", type=COUNT, help="Jobs at once, a queue; 8 unless given.")
@click.option("--max", "most", type=COUNT, help="Not a fixed number, but --min to so many, by the load.")
@click.option("--min", "least", type=click.IntRange(0, 100_000), help="With --max: so many at least; 1 unless given.")
@click.option("--target-age", type=Seconds(), metavar="SECONDS",
              help="With --max: as many as it takes for no job to wait longer; else by fullness.")  # fmt: skip
@click.option("--drain", type=Seconds(), metavar="SECONDS",
              help="How long what runs may take to finish after the first signal; 25 unless given.")  # fmt: skip
@click.option("--lease", type=Seconds(), metavar="SECONDS",
              help="How long others do not see a job unless it is renewed; else the app's setting.")  # fmt: skip
@click.option("--burst", is_flag=True, help="End when nothing is ready and nothing runs any more.")
@common(json=False)
@pass_session
def worker(
    session: Session,
    path: str | None,
    config: str | None,
    names: Sequence[str],
    workers: int | None,
    most: int | None,
    least: int | None,
    target_age: float | None,
    drain: float | None,
    lease: float | None,
    burst: bool,
) -> None:
    """Run the jobs of an app.

    Serves the queues that its tasks go to. The first SIGINT, SIGTERM or SIGHUP lets what runs finish; the second
    ends at once and gives back what runs. SIGTTIN makes each pool one worker larger, SIGTTOU one smaller. With
    --json in front (headrace --json worker …) the totals are printed as JSON in the end.
    """
    given = {"--queue": names, "--workers": workers, "--min": least, "--max": most, "--target-age": target_age,
             "--drain": drain, "--lease": lease}  # fmt: skip
    if (path is None) == (config is None):
        raise click.UsageError("Give either MODULE:APP or --config FILE.")
    if config is not None and (beside := [name for name, value in given.items() if value not in (None, ())]):
        raise click.UsageError(f"{beside[0]} does not go with --config: write it into the file.")
    from .fleet import of_app, of_file

    with ExitStack() as stack:
        if config is not None:
            fleet = of_file(session, stack, config)
        else:
            assert path is not None
            fleet = of_app(session, stack, path, names, lease, _size(workers, least, most, target_age), drain)
        _work(session, fleet, burst)


def _size(workers: int | None, least: int | None, most: int | None, target_age: float | None) -> dict[str, Any]:
    """The settings of a pool that say how many."""
    if most is None:
        if least is not None or target_age is not None:
            raise click.UsageError(f"{'--min' if least is not None else '--target-age'} needs --max as well.")
        return {} if workers is None else {"workers": workers}
    if workers is not None:
        raise click.UsageError("Give either --workers or --max.")
    return {"balance": _balance(1 if least is None else least, most, target_age)}


def _balance(least: int, most: int, target_age: float | None) -> Balance:
    from ..pool import Balance

    return Balance(min=least, max=most, target_age=target_age)


def _work(session: Session, fleet: Fleet, burst: bool) -> None:
    from ..pool import PoolFailed, run_pools_async
    from ..pool.driver import drive
    from . import serve
    from .progress import shown

    pools = list(fleet.pools.values())

    def stop() -> None:
        for pool in pools:
            pool.stop()

    def grow(by: int) -> None:
        for pool in pools:
            pool.grow(by)

    with shown(session, fleet.tally), serve.signalled(stop, grow, fleet.drain) as signals:
        try:
            summaries = drive(serve.burst(pools, fleet.queues) if burst else run_pools_async(pools))
        except PoolFailed as failed:
            raise Failure(str(failed), WORKER) from failed
    session.warn(f"ended: {fleet.tally.text()}")
    if session.json:
        session.print_json(dict(zip(fleet.pools, summaries, strict=True)))
    if burst and (left := serve.left(fleet.queues)):
        session.warn(f"left: {left}")
    if any(each.forced for each in summaries):
        given_back = sum(each.released for each in summaries)
        raise Failure(f"ended before all had finished; {given_back} given back", 128 + (signals[0] if signals else 15))
