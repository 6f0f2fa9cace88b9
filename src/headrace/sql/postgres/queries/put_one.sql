-- What put.sql does, for one job that says neither run_at nor enqueued_at, as most do: half the work for the planner.
WITH t AS MATERIALIZED (
    SELECT coalesce(%(now)s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - skew) AS now, skew
    FROM {schema}.clock LIMIT 1
), put AS (
    INSERT INTO {schema}.jobs (
        queue, id, payload, priority, max_attempts, enqueued, run_at, due, deadline, absolute, delayed, aged
    )
    SELECT
        %(queue)s, %(id)s::text, %(payload)s::bytea, %(priority)s, %(attempt)s, now, now + %(at)s::bigint,
        now + %(at)s::bigint,
        coalesce(
            %(deadline)s::bigint,
            CASE WHEN %(lifetime)s::bigint > 0 THEN least(now + %(at)s::bigint + skew + %(lifetime)s::bigint, %(latest)s) END
        ),
        false, %(at)s::bigint > 0, false
    FROM t
    RETURNING delayed, due
), counted AS (
    INSERT INTO {schema}.deltas (queue, ready, delayed, enqueued)
    SELECT %(queue)s, (NOT delayed)::int, delayed::int, 1 FROM put
)
SELECT
    now, skew, (NOT delayed)::int, CASE WHEN delayed THEN due END,
    CASE WHEN NOT pg_try_advisory_xact_lock_shared(%(bell)s) THEN
        pg_notify(%(channel)s, CASE WHEN delayed THEN 'later ' ELSE '' END || %(queue)s)
    END
FROM t, put
