"""``python -m benchmarks.day [--quick]``: a simulated day, and what it costs to hold a goal all day long.

The goal: no ready job waits for 2 s or longer, for 99.9 % of the day. The day has the shape of a real one: a quiet
night, a ramp in the morning, a dip at lunch, a peak in the evening, and two bursts nobody announced. Four pools:

- **fixed**: the smallest size that holds the goal, found with hindsight;
- **by fullness**: the defaults, which know nothing of the goal;
- **by fullness, tuned**: the cheapest of 16 settings that holds the goal, also found with hindsight;
- **by goal**: ``target_age=2.0``, nothing else, nothing known of the day.

Time is virtual and the seed fixed, so every run prints the same. The decisions are ``calibrate``'s own; around it is
just enough of a pool to be decided about. A worker costs from its start to its stop, asleep or not.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
from bisect import bisect
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from headrace.clock import FAR, SECOND
from headrace.pool.balance import Balance, Crew, Load, calibrate
from headrace.pool.rates import Rates

GOAL = 2.0
SHARE = 0.001
"""For so much of the day the goal may be missed."""
CAPACITY = 10_000
MOST = 200
DAY = 24.0
HOURLY = (2, 1, 1, 1, 1, 2, 4, 9, 15, 18, 19, 17, 11, 12, 16, 17, 16, 18, 22, 26, 24, 16, 9, 4)
"""Jobs a second at each full hour; in between, a straight line."""
BURSTS = ((10.3, 4.0, 3.0), (20.6, 5.0, 2.5))
"""At which hour, for how many minutes, by what factor."""
MEAN, SIGMA = 0.5, 0.8
"""Service times: lognormal, half a second on average, one in a hundred longer than 2.3 s."""


class Row(NamedTuple):
    """What a pool cost, and what it did for that."""

    name: str
    worker_hours: float
    over: float
    """The share of the time for which the oldest ready job had waited for the goal or longer."""
    p99: float
    """Seconds: 99 % of the jobs had waited no longer when they began."""
    most: int
    """Workers at the busiest moment."""
    moves: int
    """Workers woken, started, put to sleep and stopped."""

    @property
    def held(self) -> bool:
        return self.over <= SHARE


class Trace(NamedTuple):
    """The jobs of a day, or of some hours of it, in microseconds."""

    arrivals: list[int]
    services: list[int]
    length: int


def trace(seed: int = 1, begin: float = 0.0, hours: float = DAY) -> Trace:
    """Poisson arrivals whose rate follows the hour, by thinning."""
    rng = random.Random(seed)
    highest = max(HOURLY) * max(factor for *_, factor in BURSTS)
    mu = math.log(MEAN) - SIGMA**2 / 2
    made = Trace([], [], round(hours * 3600 * SECOND))
    at = rng.expovariate(highest)
    while at < hours * 3600:
        if rng.random() < rate_at(begin + at / 3600) / highest:
            made.arrivals.append(round(at * SECOND))
            made.services.append(max(1, round(rng.lognormvariate(mu, SIGMA) * SECOND)))
        at += rng.expovariate(highest)
    return made


def rate_at(hour: float) -> float:
    """Jobs a second at an hour of the day."""
    whole, part = int(hour), hour % 1
    rate = HOURLY[whole % 24] * (1 - part) + HOURLY[(whole + 1) % 24] * part
    for begin, minutes, factor in BURSTS:
        if begin <= hour < begin + minutes / 60:
            rate *= factor
    return rate


# -- a fixed pool ------------------------------------------------------------------------------------------------


def fixed(day: Trace, size: int) -> Row:
    """First come, first served by ``size`` workers."""
    free = [0] * size
    starts = []
    for arrival, service in zip(day.arrivals, day.services, strict=True):
        start = max(arrival, free[0])
        heapq.heapreplace(free, start + service)
        starts.append(start)
    return row(f"fixed at {size}", day, starts, size * day.length, size, 0)


def smallest(day: Trace) -> Row:
    """The fixed pool with the fewest workers that holds the goal."""
    sizes = range(1, MOST)
    return fixed(day, sizes[bisect(sizes, 0, key=lambda size: fixed(day, size).held)])


# -- a balanced one ----------------------------------------------------------------------------------------------


def balanced(name: str, day: Trace, balance: Balance) -> Row:
    """A pool whose size ``calibrate`` decides, at every heartbeat and where a burst forces it."""
    limits, rates = balance.limits, Rates()
    heartbeat, forced = round(balance.heartbeat * SECOND), balance.force_calibration_limit
    active, asleep = balance.min, deque[int]()
    running: list[tuple[int, int]] = []  # when it ends, how long it took
    starts: list[int] = []
    most = active
    begun = came = settled = ran = moves = paid = since = last = 0
    arrivals, services = [*day.arrivals, FAR], day.services
    beat = 0
    rates.feed(0, 0, 0, 0.0)
    while (now := min(arrivals[came], running[0][0] if running else FAR, beat)) < day.length:
        while arrivals[came] <= now:
            came += 1
        while running and running[0][0] <= now:
            ran += heapq.heappop(running)[1]
            settled += 1
        if now >= beat or came - last >= forced:
            ready = came - begun
            rates.feed(now, came, settled, ran / SECOND)
            load = Load(
                size=ready + len(running),
                capacity=CAPACITY,
                ready=ready,
                oldest_ready=(now - arrivals[begun]) / SECOND if ready else 0.0,
                arrival_rate=rates.arrival_rate,
                service_time=rates.service_time,
            )
            move = calibrate(balance, limits, Crew(active, tuple(asleep), len(running)), load, now)
            beat, last = now + heartbeat, came
            if move.any:
                paid += max(active + len(asleep), len(running)) * (now - since)
                since = now
                for _ in range(move.wake):
                    asleep.pop()
                active += move.wake + move.start - move.sleep
                asleep.extend([now] * move.sleep)
                for _ in range(move.stop):
                    asleep.popleft()
                moves += move.wake + move.start + move.sleep + move.stop
                most = max(most, active + len(asleep))
        while begun < came and len(running) < active:
            heapq.heappush(running, (now + services[begun], services[begun]))
            starts.append(now)
            begun += 1
    paid += (active + len(asleep)) * (day.length - since)
    return row(name, day, starts, paid, most, moves)


def by_fullness(day: Trace) -> Row:
    return balanced("by fullness", day, Balance(min=1, max=MOST))


def by_goal(day: Trace) -> Row:
    return balanced("by goal", day, Balance(min=1, max=MOST, target_age=GOAL))


def tuned(day: Trace) -> Row:
    """By fullness, with what holds the goal most cheaply on this very day. The factors are written as the number of
    jobs they stand for."""
    rows = []
    for wakeup, sleep in ((1, 0), (10, 5), (20, 10), (30, 15)):
        for least in (1, 4):
            for threshold in (None, 1):
                name = f"by fullness, tuned: min {least}, {wakeup} and {sleep} jobs, {threshold or 'half'} at once"
                rows.append(balanced(name, day, by_jobs(wakeup, sleep, least, threshold)))
    return min(rows, key=lambda each: (not each.held, each.worker_hours))


def by_jobs(wakeup: int, sleep: int, least: int, threshold: int | None) -> Balance:
    return Balance(
        min=least,
        max=MOST,
        wakeup_factor=wakeup / CAPACITY,
        sleep_factor=sleep / CAPACITY,
        sleep_threshold=threshold,
    )


# -- the outcome -------------------------------------------------------------------------------------------------


def row(name: str, day: Trace, starts: Sequence[int], paid: int, most: int, moves: int) -> Row:
    """A job is the oldest from when the one before it began, so the time over the goal can be added up."""
    goal, over, before = round(GOAL * SECOND), 0, 0
    for arrival, start in zip(day.arrivals, [*starts, *[day.length] * (len(day.arrivals) - len(starts))], strict=True):
        over += max(0, min(start, day.length) - max(before, arrival + goal))
        before = start
    ages = sorted(start - arrival for arrival, start in zip(day.arrivals, starts, strict=False))
    p99 = ages[len(ages) * 99 // 100] / SECOND if ages else 0.0
    return Row(name, paid / SECOND / 3600, over / day.length, p99, most, moves)


def show(rows: Sequence[Row], busy: float, console: Console) -> None:
    table = Table(
        "pool", title=f"{busy:.0f} hours of work; goal: younger than {GOAL:g} s for {1 - SHARE:.1%} of the time"
    )
    for name in ("worker-hours", "over the goal", "p99 age", "most", "moves"):
        table.add_column(name, justify="right")
    for each in rows:
        cells = (f"{each.worker_hours:.0f}", f"{each.over:.3%}", f"{each.p99:.2f} s", f"{each.most}", f"{each.moves}")
        table.add_row(each.name, *cells, style="" if each.held else "red")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.day", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="from 17:00 to 22:00 only")
    quick = parser.parse_args().quick
    day = trace(begin=17.0, hours=5.0) if quick else trace()
    pools: list[Callable[[Trace], Row]] = [smallest, by_fullness, tuned, by_goal]
    show([pool(day) for pool in pools], sum(day.services) / SECOND / 3600, Console(width=120))


if __name__ == "__main__":
    main()
