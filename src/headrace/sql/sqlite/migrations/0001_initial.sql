-- Times are microseconds of queue time: a line that runs with the machine's steady clock and never steps.

CREATE TABLE headrace_clock (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    boot   TEXT NOT NULL,     -- whose steady clock the anchor belongs to; a new boot needs a new anchor
    anchor INTEGER NOT NULL,  -- queue time - steady clock
    skew   INTEGER NOT NULL   -- calendar - queue time
) STRICT;

CREATE TABLE headrace_queues (
    queue    INTEGER PRIMARY KEY,
    name     TEXT NOT NULL UNIQUE,
    salt     INTEGER NOT NULL,  -- token - fence
    paused   INTEGER NOT NULL DEFAULT 0,
    fence    INTEGER NOT NULL DEFAULT 0,  -- the last one given
    soonest  INTEGER NOT NULL DEFAULT 0,  -- before this moment nothing falls due
    ready    INTEGER NOT NULL DEFAULT 0,
    delayed  INTEGER NOT NULL DEFAULT 0,
    inflight INTEGER NOT NULL DEFAULT 0,
    dead     INTEGER NOT NULL DEFAULT 0,
    enqueued        INTEGER NOT NULL DEFAULT 0,
    acked           INTEGER NOT NULL DEFAULT 0,
    retried         INTEGER NOT NULL DEFAULT 0,
    expired_leases  INTEGER NOT NULL DEFAULT 0,
    ack_too_late    INTEGER NOT NULL DEFAULT 0,
    cancelled       INTEGER NOT NULL DEFAULT 0,
    taken           INTEGER NOT NULL DEFAULT 0,
    dropped         INTEGER NOT NULL DEFAULT 0,
    dead_total      INTEGER NOT NULL DEFAULT 0,
    dead_dropped    INTEGER NOT NULL DEFAULT 0,
    deadline_missed INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE headrace_jobs (
    pk           INTEGER PRIMARY KEY,  -- the place in line: behind all that are in the table
    queue        INTEGER NOT NULL,
    id           TEXT NOT NULL,
    payload      BLOB NOT NULL,
    priority     INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    enqueued     INTEGER NOT NULL,  -- the first time
    run_at       INTEGER NOT NULL,
    deadline     INTEGER,           -- by calendar
    absolute     INTEGER NOT NULL,  -- run_at was asked for by calendar: it moves when the calendar steps
    state        INTEGER NOT NULL CHECK (state IN (0, 1, 2)),  -- delayed, ready, inflight
    due          INTEGER NOT NULL,  -- delayed: ready from then; inflight: leased until then
    attempt      INTEGER NOT NULL DEFAULT 0,
    fence        INTEGER NOT NULL DEFAULT 0,
    cancelled    INTEGER NOT NULL DEFAULT 0,
    last_error   TEXT
) STRICT;

CREATE UNIQUE INDEX headrace_jobs_id ON headrace_jobs (queue, id);
-- Equal priorities come in the order of pk, which every index ends with.
CREATE INDEX headrace_jobs_ready ON headrace_jobs (queue, priority DESC) WHERE state = 1;
CREATE INDEX headrace_jobs_age ON headrace_jobs (queue, state, enqueued) WHERE state <> 2;
CREATE INDEX headrace_jobs_due ON headrace_jobs (queue, due) WHERE state <> 1;

CREATE TABLE headrace_dead (
    pk           INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order of death
    queue        INTEGER NOT NULL,
    id           TEXT NOT NULL,
    payload      BLOB NOT NULL,
    priority     INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    enqueued     INTEGER NOT NULL,
    run_at       INTEGER NOT NULL,
    deadline     INTEGER,
    died         INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    fence        INTEGER NOT NULL,
    cancelled    INTEGER NOT NULL,
    last_error   TEXT
) STRICT;

CREATE INDEX headrace_dead_queue ON headrace_dead (queue);
CREATE INDEX headrace_dead_id ON headrace_dead (queue, id);
