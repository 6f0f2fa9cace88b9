"""What will hurt, told from the server's settings and the queues' own figures: each check is a pure function."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..sql.finding import Finding, of_queue
from .figures import Figures

SUPPORTED = range(13, 19)
"""Major versions."""
MINUTE, DAY = 60.0, 86_400.0
MIB = 1 << 20
HELD = MINUTE
"""Seconds for which an old snapshot does no harm worth telling; ten times that is serious."""
SLOT_AGE = 1_000_000
"""Transactions."""
SKEW = 1.0
"""Seconds between two clocks; thirty times that is serious."""
UNREAD = 7 * DAY
LARGE = 64 * 1024
"""Bytes of payload."""
OVERDUE = MINUTE
UNFOLDED = 100_000
"""Rows that have to be added up for each look at the figures."""
SWOLLEN = 20
"""Times its fair size, from 64 MiB on."""


def checks() -> list[Callable[[Figures], Iterator[Finding]]]:
    return [
        version, read_only, durability, vacuum, dead_rows, horizon, idle_in_transaction, connections, pooler, clocks,
        statistics, options, bloat, figures, dead_letters, payloads, overdue, unfolded,
    ]  # fmt: skip


def version(f: Figures) -> Iterator[Finding]:
    if f.server.version not in SUPPORTED:
        old = f.server.version < SUPPORTED[0]
        yield Finding(
            "version", old, f"PostgreSQL {f.server.version}: Headrace is made for {SUPPORTED[0]} to {SUPPORTED[-1]}",
            "upgrade the server" if old else "see whether there is a newer Headrace",
        )  # fmt: skip


def read_only(f: Figures) -> Iterator[Finding]:
    if f.server.read_only:
        yield Finding(
            "read_only", True, "the server is read-only: a standby, or a failover that is not over",
            "let the URL lead to the primary: …?target_session_attrs=read-write with all hosts in it",
        )  # fmt: skip


def durability(f: Figures) -> Iterator[Finding]:
    if not f.server.fsync:
        yield Finding(
            "fsync", True, "fsync is off: a power cut may leave a database that cannot be read any more",
            "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf()",
        )  # fmt: skip
    if f.server.synchronous_commit == "off":
        yield Finding(
            "synchronous_commit", False,
            "synchronous_commit is off: when the server crashes, jobs that were accepted in its last moments are lost, "
            "and some that were done in them are done again",
            f"ALTER DATABASE {f.database} RESET synchronous_commit (or ALTER ROLE, or the URL: where it is set)",
        )  # fmt: skip


def vacuum(f: Figures) -> Iterator[Finding]:
    if not f.server.autovacuum:
        yield Finding(
            "autovacuum", True, "autovacuum is off: done jobs stay on the disk, and every claim has to step over them",
            "ALTER SYSTEM SET autovacuum = on; ALTER SYSTEM SET track_counts = on; SELECT pg_reload_conf()",
        )  # fmt: skip
    for table in f.tables:
        if any(each in ("autovacuum_enabled=false", "autovacuum_enabled=off") for each in table.options or ()):
            yield Finding(
                "autovacuum", True, f"table {table.name}: autovacuum is off for it",
                f"ALTER TABLE {f.schema}.{table.name} RESET (autovacuum_enabled)",
            )  # fmt: skip


def dead_rows(f: Figures) -> Iterator[Finding]:
    """Where autovacuum does not keep up: far more dead rows than those at which it should begin."""
    for table in f.tables:
        set_to = dict(each.split("=", 1) for each in table.options or ())
        share = float(set_to.get("autovacuum_vacuum_scale_factor", "0.2"))
        begin = float(set_to.get("autovacuum_vacuum_threshold", "50")) + share * table.live
        if table.dead > max(50_000.0, 10 * begin):
            yield Finding(
                "dead_rows", table.dead > 1_000_000,
                f"table {table.name}: {table.dead:,} dead rows, {table.live:,} living: vacuum does not keep up, "
                "or something holds it back",
                f"VACUUM {f.schema}.{table.name}; then more autovacuum_max_workers, or a shorter autovacuum_naptime",
            )  # fmt: skip


def horizon(f: Figures) -> Iterator[Finding]:
    for holder in f.holders:
        if holder.kind == "slot":
            if holder.age > SLOT_AGE:
                yield Finding(
                    "horizon", holder.age > 10 * SLOT_AGE,
                    f"slot {holder.name} ({holder.state}) holds back vacuum: {holder.age:,.0f} transactions",
                    f"bring its receiver back, or SELECT pg_drop_replication_slot('{holder.name}')",
                )  # fmt: skip
        elif holder.age > HELD:
            who = f"session {holder.name} ({holder.application or 'no name'}, {holder.user}, {holder.state})"
            cure = f"SELECT pg_terminate_backend({holder.name})"
            if holder.kind == "prepared":
                who, cure = (
                    f"prepared transaction {holder.name}",
                    f"ROLLBACK PREPARED '{holder.name}', or COMMIT PREPARED",
                )
            yield Finding(
                "horizon", holder.age > 10 * HELD,
                f"{who} has an old snapshot, for {holder.age:,.0f} s: vacuum removes nothing that was done since", cure,
            )  # fmt: skip
    if not f.server.sees_all:
        yield Finding(
            "horizon", False, "this user does not see how old the snapshots of others are",
            "GRANT pg_read_all_stats TO …, or run headrace doctor as one who has it",
        )  # fmt: skip


def idle_in_transaction(f: Figures) -> Iterator[Finding]:
    if not f.server.idle_in_transaction:
        yield Finding(
            "idle_in_transaction", False,
            "idle_in_transaction_session_timeout is 0: a program that hangs in one holds back vacuum for ever",
            f"ALTER DATABASE {f.database} SET idle_in_transaction_session_timeout = '60s'",
        )  # fmt: skip


def connections(f: Figures) -> Iterator[Finding]:
    used = f.server.connections / f.server.max_connections
    if used > 0.8:
        yield Finding(
            "connections", used > 0.95,
            f"{f.server.connections} of {f.server.max_connections} connections are taken",
            "fewer connections= for each process, a pooler, or ALTER SYSTEM SET max_connections (takes a restart)",
        )  # fmt: skip


def pooler(f: Figures) -> Iterator[Finding]:
    if f.pooler and not f.direct:
        yield Finding(
            "pooler", False,
            "a pooler that shares sessions is in between: nobody can be woken through it, so workers look ten times a "
            "second, and statements are planned anew each time",
            "add direct='postgresql://…' with the server's own address",
        )  # fmt: skip


def clocks(f: Figures) -> Iterator[Finding]:
    if abs(f.skew) > SKEW:
        yield Finding(
            "clocks", abs(f.skew) > 30 * SKEW,
            f"the server's clock is {abs(f.skew):,.1f} s {'ahead of' if f.skew > 0 else 'behind'} this machine's; the "
            "server's decides when a job with run_at or a deadline is due",
            "let both follow NTP: timedatectl set-ntp true",
        )  # fmt: skip


def statistics(f: Figures) -> Iterator[Finding]:
    for table in f.tables:
        if table.live > 10_000 and not table.analysed:
            yield Finding(
                "statistics", False,
                f"table {table.name}: never analysed, with {table.live:,} rows: statements are planned blindly",
                f"ANALYZE {f.schema}.{table.name}",
            )  # fmt: skip


def options(f: Figures) -> Iterator[Finding]:
    for table in f.tables:
        if table.name == "jobs" and "fillfactor=50" not in (table.options or ()):
            yield Finding(
                "options", False, "table jobs: fillfactor is not 50, so a claim has no room beside the old row and "
                "writes to every index", f"ALTER TABLE {f.schema}.jobs SET (fillfactor = 50)",
            )  # fmt: skip


def bloat(f: Figures) -> Iterator[Finding]:
    average = max([512, *(queue.payload_p99 for queue in f.queues)])
    for table in f.tables:
        fair = 2 * (table.live + 1) * average
        if table.name in ("jobs", "leases", "deltas") and table.size > max(64 * MIB, SWOLLEN * fair):
            yield Finding(
                "bloat", False,
                f"table {table.name}: {table.size / MIB:,.0f} MiB for {table.live:,} rows: it was much fuller once, or "
                "vacuum was held back",
                f"at a quiet moment: VACUUM FULL {f.schema}.{table.name} (locks it for seconds), or pg_repack",
            )  # fmt: skip


def figures(f: Figures) -> Iterator[Finding]:
    for queue in f.queues:
        yield from of_queue(queue.name, queue.stats)
        said = (queue.stats.ready, queue.stats.delayed, queue.stats.inflight, queue.stats.dead)
        if said != queue.counted:
            yield Finding(
                "figures", True,
                f"queue {queue.name}: figures say {said}, rows are {queue.counted} (ready, delayed, in flight, dead): "
                "a defect, or somebody wrote to the tables",
                "keep a backup and report it",
            )  # fmt: skip


def dead_letters(f: Figures) -> Iterator[Finding]:
    for queue in f.queues:
        if queue.oldest_dead is not None and queue.oldest_dead > UNREAD:
            yield Finding(
                "dead_letters", False,
                f"queue {queue.name}: {queue.stats.dead:,} dead letters, the first for {queue.oldest_dead / DAY:,.0f} "
                "days: does anybody read them?",
                f"headrace dead list --queue {queue.name}; then replay or purge; dead_keep= prunes by age",
            )  # fmt: skip


def payloads(f: Figures) -> Iterator[Finding]:
    for queue in f.queues:
        if queue.payload_p99 > LARGE:
            yield Finding(
                "payloads", False,
                f"queue {queue.name}: large payloads (99th percentile {queue.payload_p99 / 1024:,.0f} KiB, largest "
                f"{queue.payload_max / 1024:,.0f} KiB) are written, kept and read with every job",
                "App(outside=…) keeps the large arguments of tasks elsewhere; max_payload= refuses what is large",
            )  # fmt: skip


def overdue(f: Figures) -> Iterator[Finding]:
    for queue in f.queues:
        if queue.overdue > OVERDUE and (queue.stats.delayed or queue.stats.inflight):
            yield Finding(
                "overdue", False,
                f"queue {queue.name}: something has been due for {queue.overdue:,.0f} s, and nobody moves it",
                "no worker of this queue runs: headrace worker …",
            )  # fmt: skip


def unfolded(f: Figures) -> Iterator[Finding]:
    for queue in f.queues:
        if queue.deltas > UNFOLDED:
            yield Finding(
                "unfolded", False,
                f"queue {queue.name}: {queue.deltas:,} changes of its figures have not been added up; workers do that",
                f"a running worker, or headrace stats --queue {queue.name}",
            )  # fmt: skip
