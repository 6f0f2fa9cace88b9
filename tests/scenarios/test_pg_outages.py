"""A server of PostgreSQL that goes away, in each way it may: its workers wait, say so once, and go on by themselves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest
from kit import Stage, Worker
from pg_databases import end_others
from pg_proxy import Proxy
from pg_server import PrivateServer, may_mount

from headrace import Job, Unavailable, connect
from headrace.errors import StorageFull

LOOPS = ["fetching jobs", "settling jobs", "extending leases"]
StartServer = Callable[..., PrivateServer]
OnUrl = Callable[[str], Stage]


def in_time(stage: Stage, *ids: str, **options: object) -> None:
    """Put in now, and started long before anybody would look by themselves."""
    stage.enqueue("in loop", "return", *ids, **options)
    for id in ids:
        stage.started(1, id)


def end(*workers: Worker) -> None:
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        assert worker.ends() == 0
        assert "Traceback" not in worker.output


def test_a_worker_goes_on_by_itself_after_every_kind_of_outage(stage_on: OnUrl, private_server: StartServer) -> None:
    """F20. Handlers run on meanwhile, and what they have done is written down afterwards; nobody starts twice."""
    server = private_server()
    stage = stage_on(f"{server.dsn()}?poll=60")
    stage.env["HEADRACE_URL"] += "&patience=1"
    stage.enqueue("in loop", "hold", "holds in loop")
    stage.enqueue("in process", "hold", "holds in process")
    worker = stage.worker(workers=8, lease=60.0)
    stage.started(2)

    server.restart("immediate")
    in_time(stage, "after a crash")
    with server.connect() as admin:
        end_others(admin)
    in_time(stage, "after all sessions were ended")

    stage.enqueue("in loop", "sleep:1", "ends meanwhile")
    stage.started(1, "ends meanwhile")
    server.stop()
    stage.wait_for("end", 1, "ends meanwhile")
    worker.says("fetching jobs failed")
    worker.says("settling jobs failed")
    stage.env["HEADRACE_URL"] = stage.url
    late = stage.worker(workers=1)  # started with no server to be seen
    with pytest.raises(Unavailable, match=r"did not answer, for 0\.2 s now"):
        connect(f"{server.dsn()}?patience=0.2")
    server.start()
    late.says("running")
    in_time(stage, *(f"after a long outage {number}" for number in range(4)))
    stage.let_go()
    stats = stage.until_done(9)
    assert (stats.acked, stats.expired_leases, stats.dead_total, stats.ack_too_late) == (9, 0, 0, 0)
    assert len(stage.lines("start")) == len(stage.lines("end")) == 9
    for loop in ("fetching jobs", "settling jobs"):
        worker.says(f"{loop} works again")
        assert worker.output.count(f"{loop} failed") == worker.output.count(f"{loop} works again") == 1
    end(worker, late)


def test_acks_that_cannot_be_written_are_written_later_and_no_job_runs_twice(
    dsn: str, stage_on: OnUrl, proxy: Callable[[str], Proxy]
) -> None:
    """F21. From just before the acks on, all connections are reset and new ones refused, for longer than a worker's
    patience and for less than a lease."""
    between = proxy(dsn)
    stage = stage_on(dsn)
    stage.env["HEADRACE_URL"] = f"{between.dsn}?patience=0.5"
    stage.enqueue("in loop", "hold", *(f"loop {number}" for number in range(15)))
    stage.enqueue("in thread", "hold", *(f"thread {number}" for number in range(5)))
    worker = stage.worker(workers=20, lease=30.0)
    stage.started(20)
    between.refuse()
    stage.let_go()
    stage.wait_for("end", 20)
    worker.says("settling jobs failed")
    between.resume()
    in_time(stage, "right after")
    stats = stage.until_done(21)
    assert (stats.acked, stats.expired_leases, stats.dead_total, stats.ack_too_late) == (21, 0, 0, 0)
    assert len(stage.lines("start")) == 21
    worker.says("settling jobs works again")
    end(worker)


def test_an_outage_longer_than_the_lease_costs_a_second_run_and_nothing_else(
    dsn: str, stage_on: OnUrl, proxy: Callable[[str], Proxy]
) -> None:
    """F21, F02. Another worker has done it meanwhile: the late ack changes nothing, and nothing counts as failed."""
    between = proxy(dsn)
    stage = stage_on(dsn)
    stage.env["HEADRACE_URL"] = f"{between.dsn}?patience=0.5"
    stage.enqueue("in loop", "hold", "job", max_attempts=2)
    cut_off = stage.worker(workers=2, lease=1.5)
    stage.started(1)
    between.refuse()
    stage.env["HEADRACE_URL"] = dsn
    other = stage.worker(workers=2, lease=1.5)
    stage.started(2)
    stage.let_go()
    stats = stage.until_done(1)
    assert stats.expired_leases == 1
    end(other)
    between.resume()
    in_time(stage, "right after")
    stats = stage.until_done(2)
    assert (stats.acked, stats.retried, stats.dead_total) == (2, 0, 0)
    assert [line.attempt for line in stage.lines("start", "job")] == [1, 2]
    end(cut_off)


@pytest.mark.parametrize("how", ["read-only", "frozen", *(["full"] if may_mount() else [])])
def test_a_server_that_is_there_and_does_not_write_is_waited_for(
    how: str, stage_on: OnUrl, private_server: StartServer
) -> None:
    """F20, F21, F29. A failover that leaves it read-only, a machine that hangs, a disk with no room: each of the
    worker's loops says so once, and all that was done is written down in the end."""
    server = private_server(disk=48 if how == "full" else 0)
    dsn = server.small_dsn() if how == "full" else server.dsn()
    stage = stage_on(f"{dsn}?patience=10")
    stage.env["HEADRACE_URL"] = f"{dsn}?patience=0.3"
    stage.enqueue("in loop", "hold", *(f"job {number}" for number in range(10)))
    worker = stage.worker(workers=20, lease=20.0)
    stage.started(10)
    in_words: type[Exception] = Unavailable
    if how == "read-only":
        server.read_only()
    elif how == "frozen":
        server.freeze()
    else:
        server.fill_disk()
        in_words = StorageFull
    stage.let_go()
    stage.wait_for("end", 10)
    if how != "full":  # a deletion may find room where there is none for a new row
        worker.says("settling jobs failed")
    if how != "frozen":  # it has been seen to be told, and takes its time
        with pytest.raises(in_words), closing(connect(f"{dsn}?patience=0.2")) as hasty:
            hasty.enqueue_many([Job(id=f"refused {number}", payload=bytes(100_000)) for number in range(10)])
    if how == "read-only":
        server.read_only(False)
    elif how == "frozen":
        server.thaw()
    else:
        server.make_room()
    in_time(stage, "right after")
    stats = stage.until_done(11)
    assert (stats.acked, stats.dead_total) == (11, 0)
    # A claim that was on its way when the server froze is carried out when it goes on, for nobody.
    assert stats.expired_leases <= (how == "frozen")
    assert len(stage.lines("start")) == 11
    for loop in LOOPS:
        assert worker.output.count(f"{loop} failed") <= 1
    end(worker)
