"""Measuring things against each other on a machine that is never quiet.

All cases of a bench take turns (A B C, A B C, …), so that a slow minute hits all of them, and a ratio is taken
within one round before the median of the rounds is. A single figure says as much about the machine as about the
program; read the ratios.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

Values = dict[str, list[float]]


class Case(NamedTuple):
    """One thing that is measured. ``run`` returns its cost, in the bench's unit: less is better."""

    name: str
    run: Callable[[], float]


class Ratio(NamedTuple):
    """The cost of ``over`` divided by that of ``under``; of several, the cheapest by its median counts."""

    name: str
    over: Sequence[str]
    under: Sequence[str]
    at_least: float | None = None
    at_most: float | None = None

    def bar(self) -> str:
        if self.at_least is not None:
            return f"≥ {self.at_least:g}"
        return "" if self.at_most is None else f"≤ {self.at_most:g}"

    def met(self, median: float) -> bool | None:
        if self.at_least is not None:
            return median >= self.at_least
        return None if self.at_most is None else median <= self.at_most


class Bench(NamedTuple):
    title: str
    unit: str
    cases: Sequence[Case]
    ratios: Sequence[Ratio] = ()
    note: str = ""


class Scale(NamedTuple):
    """How much to do: ``--quick`` shows that everything runs, and roughly where it stands."""

    quick: bool
    rounds: int

    def count(self, full: int) -> int:
        return max(full // 10, 10) if self.quick else full


class Unmeasured(Exception):
    """A case that cannot be measured here, with the reason; the others go on."""


def per_job(count: int, seconds: float) -> float:
    """Microseconds a job."""
    return seconds / count * 1e6


@contextmanager
def stopwatch() -> Iterator[Callable[[], float]]:
    """``with stopwatch() as seconds: …``; afterwards ``seconds()`` is how long the block took."""
    start = time.perf_counter()
    end = 0.0
    yield lambda: end - start
    end = time.perf_counter()


def measure(bench: Bench, rounds: int, console: Console) -> Values:
    """Every case once a round. One that cannot be measured is told once and left out from then on."""
    values: Values = {case.name: [] for case in bench.cases}
    cases = list(bench.cases)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(bench.title, total=rounds * len(cases))
        for _ in range(rounds):
            for case in list(cases):
                progress.update(task, description=f"{bench.title}: {case.name}")
                gc.collect()
                try:
                    values[case.name].append(case.run())
                except Unmeasured as reason:
                    console.print(f"[yellow]left out[/] {case.name}: {reason}", highlight=False)
                    cases.remove(case)
                    del values[case.name]
                progress.advance(task)
    return values


def cheapest(names: Sequence[str], values: Values) -> str | None:
    measured = [name for name in names if name in values]
    return min(measured, key=lambda name: statistics.median(values[name]), default=None)


def show(bench: Bench, values: Values, console: Console) -> list[str]:
    """Prints the tables; returns the names of the ratios that miss their bar."""
    figures = Table(title=bench.title, title_justify="left", title_style="bold", caption=bench.note or None)
    figures.caption_justify = "left"
    figures.add_column(bench.unit)
    for heading in ("median", "min", "max"):
        figures.add_column(heading, justify="right")
    for name, measured in values.items():
        figures.add_row(name, *(_figure(pick(measured)) for pick in (statistics.median, min, max)))
    console.print(figures)
    missed = []
    ratios = Table("ratio", *(("min", "median", "max", "bar")), "")
    for ratio in bench.ratios:
        over, under = cheapest(ratio.over, values), cheapest(ratio.under, values)
        if over is None or under is None:
            continue
        each = [a / b for a, b in zip(values[over], values[under], strict=True)]
        median = statistics.median(each)
        met = ratio.met(median)
        if met is False:
            missed.append(f"{bench.title}: {ratio.name} {median:.3g} ({ratio.bar()})")
        verdict = {True: "[green]met[/]", False: "[red]missed[/]", None: ""}[met]
        label = f"{ratio.name}\n[dim]{over} / {under}[/]"
        ratios.add_row(label, *(f"{value:.3g}" for value in (min(each), median, max(each))), ratio.bar(), verdict)
    if ratios.row_count:
        console.print(ratios)
    console.print()
    return missed


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
