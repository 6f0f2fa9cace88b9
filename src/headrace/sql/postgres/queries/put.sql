-- An array of one element says the same for all jobs, an empty one NULL: unnest fills up with NULL.
WITH t AS MATERIALIZED (
    SELECT coalesce(%(now)s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - skew) AS now, skew
    FROM {schema}.clock LIMIT 1
), given AS (
    SELECT
        id, payload, deadline, now, skew,
        coalesce(priority, (%(priorities)s::int[])[1]) AS priority,
        coalesce(attempts, (%(attempts)s::int[])[1]) AS attempts,
        coalesce(absolute, (%(absolutes)s::bool[])[1]) AS absolute,
        coalesce(at, (%(ats)s::bigint[])[1]) AS at,
        least(now, coalesce(enqueued - skew, now)) AS enqueued
    FROM t, unnest(
        %(ids)s::text[], %(payloads)s::bytea[], %(priorities)s::int[], %(attempts)s::int[], %(absolutes)s::bool[],
        %(ats)s::bigint[], %(deadlines)s::bigint[], %(enqueueds)s::bigint[]
    ) AS u (id, payload, priority, attempts, absolute, at, deadline, enqueued)
), dated AS (
    SELECT *, CASE WHEN absolute THEN greatest(now, at - skew) ELSE now + at END AS due FROM given
), put AS (
    INSERT INTO {schema}.jobs (
        queue, id, payload, priority, max_attempts, enqueued, run_at, due, deadline, absolute, delayed, aged
    )
    SELECT
        %(queue)s, id, payload, priority, attempts, enqueued, due, due,
        coalesce(deadline, CASE WHEN %(lifetime)s::bigint > 0 THEN least(due + skew + %(lifetime)s::bigint, %(latest)s) END), absolute, due > now, enqueued < now
    FROM dated
    RETURNING delayed, due
), counts AS MATERIALIZED (
    SELECT count(*) AS all, count(*) FILTER (WHERE delayed) AS delayed, min(due) FILTER (WHERE delayed) AS soonest FROM put
), counted AS (
    INSERT INTO {schema}.deltas (queue, ready, delayed, enqueued)
    SELECT %(queue)s, counts.all - delayed, delayed, counts.all FROM counts
)
SELECT
    now, skew, counts.all - delayed, soonest,
    CASE WHEN NOT pg_try_advisory_xact_lock_shared(%(bell)s) THEN
        pg_notify(%(channel)s, CASE WHEN counts.all = delayed THEN 'later ' ELSE '' END || %(queue)s)
    END
FROM t, counts
