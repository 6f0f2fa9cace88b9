"""The back door: what is really stored, read without the store's own calls, and what must always be true of it.

A store that vouches for itself proves nothing. Each backend that can shows its raw state here, and the suite
checks the invariants (I1 to I7, and the law of conservation C) on it after every call.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..job import State, Stats


class RawJob(msgspec.Struct, frozen=True, kw_only=True):
    """One job as it lies in the store."""

    id: str
    seq: int
    """Its place in line; a job that comes back keeps it, one that is replayed or enqueued anew gets another."""
    places: tuple[State, ...]
    """Every place where it is found; a right one is in exactly one."""
    attempt: int
    fence: int
    """Of its latest lease; 0 when it was never leased."""
    enqueued: int
    """Its first enqueue, in any unit and from any origin, as long as both stay the same."""
    left: int | None = None
    """Microseconds until a delayed job is due, or until a lease is over; None elsewhere."""


class RawState(msgspec.Struct, frozen=True, kw_only=True):
    """All of one queue, at one moment."""

    jobs: tuple[RawJob, ...]
    """The unfinished ones."""
    dead: tuple[RawJob, ...] = ()
    ids: tuple[str, ...] = ()
    """Every id that the store holds to be in use."""


class BrokenInvariant(AssertionError):
    """Names the invariant, the call behind which it was seen broken, and the job."""


def check_state(raw: RawState, capacity: int, *, moved: bool) -> None:
    """What must be true of one state, at any moment. ``moved``: a call came to its end, which first moves what is
    due; one that was refused need not have."""
    names = [job.id for job in raw.jobs]
    for job in raw.jobs:
        _hold("I1", len(job.places) == 1, f"{job.id!r} is in {[str(place) for place in job.places] or 'no place'}")
        place = job.places[0]
        _hold("I1", place is not State.DEAD, f"{job.id!r} is unfinished and dead")
        timed = place in (State.INFLIGHT, State.DELAYED)
        _hold("I2", timed == (job.left is not None), f"{job.id!r} is {place} and has {job.left} µs left")
        _hold("I2", place is not State.INFLIGHT or job.fence > 0, f"{job.id!r} is in flight without a fence")
        _hold("I2c", not moved or job.left is None or job.left > 0, f"{job.id!r} is due, and still {place}")
    for job in raw.dead:
        _hold("I1", job.places == (State.DEAD,), f"the dead {job.id!r} is in {job.places}")
    _hold("I2b", len(set(names)) == len(names), "two unfinished jobs have one id")
    _hold("I2b", sorted(raw.ids) == sorted(names), f"ids in use {sorted(raw.ids)}, unfinished jobs {sorted(names)}")
    _hold("I6", len(names) <= capacity, f"{len(names)} unfinished jobs, and room for {capacity}")


def check_counts(raw: RawState, stats: Stats) -> None:
    """The figures say what is there."""
    for state, told in ((State.READY, stats.ready), (State.DELAYED, stats.delayed), (State.INFLIGHT, stats.inflight)):
        found = sum(state in job.places for job in raw.jobs)
        _hold("C", found == told, f"{found} jobs are {state}, the figures say {told}")
    _hold("C", len(raw.dead) == stats.dead, f"{len(raw.dead)} jobs are dead, the figures say {stats.dead}")


def check_stats(before: Stats | None, stats: Stats) -> None:
    """The law of conservation, and totals that only rise."""
    _hold("C", stats.unaccounted == 0, f"{stats.unaccounted} jobs are unaccounted for: {stats}")
    if before is not None:
        for name in TOTALS:
            _hold("C", getattr(stats, name) >= getattr(before, name), f"the total {name} fell")


def check_change(call: str, before: RawState, after: RawState, fences: dict[str, int]) -> None:
    """What may change in one call. ``fences`` keeps the highest fence of each id that was ever seen."""
    old = {(job.id, job.seq): job for job in before.jobs}
    for job in after.jobs:
        was = old.get((job.id, job.seq))
        if was is not None and call.startswith("enqueue") and job.fence < was.fence:
            was = None  # time took the old one away, and the new one stands where it stood
        if was is not None and call == "replay" and was.attempt > job.attempt == 0:
            was = None  # time buried the old one first, and replay put it back where it stood
        if was is not None:
            _hold("I7", job.fence >= was.fence, f"{call} took {job.id!r} from fence {was.fence} to {job.fence}")
            _hold("I4", job.enqueued == was.enqueued, f"{call} gave {job.id!r} another first enqueue time")
            allowed = _attempts(call, was.attempt)
            _hold("I3", job.attempt in allowed, f"{call} took {job.id!r} from attempt {was.attempt} to {job.attempt}")
        elif call == "replay":
            first = [dead.enqueued for dead in before.dead if dead.id == job.id]
            _hold("I4", not first or job.enqueued in first, f"replay gave {job.id!r} another first enqueue time")
        highest = fences.get(job.id, 0)
        if State.INFLIGHT in job.places and (was is None or was.places != job.places or was.fence != job.fence):
            _hold("I7", job.fence > highest, f"{job.id!r} was leased with fence {job.fence} after {highest}")
        fences[job.id] = max(highest, job.fence)


def _attempts(call: str, before: int) -> Iterable[int]:
    if call.startswith("dequeue"):
        return (before, before + 1)
    return (before, before - 1) if call in ("release", "release_many") else (before,)


NOW = ("ready", "delayed", "inflight", "dead", "oldest_ready", "capacity", "paused", "leaked")
TOTALS = tuple(name for name in Stats.__struct_fields__ if name not in NOW)


def _hold(rule: str, true: bool, said: str) -> None:
    if not true:
        raise BrokenInvariant(f"{rule}: {said}")
