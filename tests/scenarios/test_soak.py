"""All at once, for some seconds: mixed outcomes, three workers, and one of them killed again and again."""

from __future__ import annotations

import os
import random

from kit import Stage

SCALE = int(os.environ.get("HEADRACE_SOAK", "1"))
"""How many times 600 jobs: 1 with the other tests, more with ``make soak``."""

MIX = {
    "return": 24,
    "sleep:0.02": 16,
    "raise once": 6,
    "snooze once": 6,
    "raise": 3,
    "discard": 2,
    "follow up": 3,
}  # of 60
DEADLY = {"raise", "discard"}


def test_every_job_is_done_or_dead_as_designed_while_workers_are_killed_again_and_again(stage: Stage) -> None:
    """F01, F02, F05, F14: 600 jobs, times SCALE."""
    dice = random.Random(4)
    acts: dict[str, str] = {}
    for act, share in MIX.items():
        for kind, part in (("in loop", 0.5), ("in thread", 0.4), ("in process", 0.1)):
            count = round(share * part * 10 * SCALE)
            ids = [f"{kind} {act} {number}" for number in range(count)]
            acts.update(dict.fromkeys(ids, act))
            # A kill costs what runs an attempt: more kills than attempts would bury what is well.
            stage.enqueue(kind, act, *ids, max_attempts=2 if act == "raise" else 50)
    workers = [stage.worker(workers=4, lease=0.5) for _ in range(3)]
    killed = set()
    for seen in range(60, 600 * SCALE, 60):
        stage.wait_for("start", seen)
        victim = dice.randrange(3)
        killed.add(workers[victim].pid)
        workers[victim].kill()
        workers[victim] = stage.worker(workers=4, lease=0.5)
    dead = {id for id, act in acts.items() if act in DEADLY}
    done = set(acts) - dead
    done |= {f"{id}-next" for id, act in acts.items() if act == "follow up"}
    stats = stage.until_done(len(done))
    for worker in workers:
        worker.says("running")
        worker.process.terminate()
    assert [worker.ends() for worker in workers] == [0, 0, 0]

    assert len(acts) == 600 * SCALE
    assert len(killed) == 10 * SCALE - 1
    assert {line.id for line in stage.lines("end")} >= done
    assert {job.id for job in stage.queue.dead(len(dead) + 1)} == dead
    assert (stats.dead_total, stats.unaccounted) == (len(dead), 0)
    starts = stage.lines("start")
    # One that is killed when it has enqueued the next, and maybe after that one's end, enqueues it once more.
    follow_ups = [line.id for line in starts if acts.get(line.id) == "follow up"]
    assert 0 <= stats.acked - len(done) <= len(follow_ups) - len(set(follow_ups))
    assert all(line.attempt <= 2 for line in starts if acts.get(line.id) == "raise")
    # Who started twice had been in the hands of a worker that was killed: at work, or done and not written down yet.
    # Whoever was waiting there has lost an attempt, but had not started.
    again = [line for line in starts if acts.get(line.id) not in {"raise once", "raise", "snooze once"}]
    first = {line.id: line for line in reversed(again)}
    again = [first[line.id] for line in again if line is not first[line.id]]
    assert all(line.pid in killed for line in again if not line.id.startswith("in process"))
    assert sum(line.id.startswith("in process") for line in again) <= len(killed) * 4
