-- put.sql for a transaction that is not ours. What is there already is left out instead of aborting it: the caller
-- sees that, and takes the others out again. The notification waits for the commit, where a lock would be held till then.
WITH t AS MATERIALIZED (
    SELECT coalesce(%(now)s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - skew) AS now, skew
    FROM {schema}.clock, {schema}.queues WHERE queue = %(queue)s::int AND salt = %(salt)s::bigint LIMIT 1
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
        %(queue)s::int, id, payload, priority, attempts, enqueued, due, due,
        coalesce(deadline, CASE WHEN %(lifetime)s::bigint > 0 THEN least(due + skew + %(lifetime)s::bigint, %(latest)s::bigint) END),
        absolute, due > now, enqueued < now
    FROM dated
    ON CONFLICT (queue, id) DO NOTHING
    RETURNING pk, id, delayed, due
), counts AS MATERIALIZED (
    SELECT
        count(*) AS all, count(*) FILTER (WHERE delayed) AS delayed, min(due) FILTER (WHERE delayed) AS soonest,
        coalesce(array_agg(pk), '{}') AS jobs, coalesce(array_agg(id), '{}') AS ids
    FROM put
), counted AS (
    INSERT INTO {schema}.deltas (queue, ready, delayed, enqueued)
    SELECT %(queue)s::int, counts.all - delayed, delayed, counts.all FROM counts
    WHERE counts.all = cardinality(%(ids)s::text[])
)
SELECT
    jobs, counts.ids,
    CASE WHEN counts.all = cardinality(%(ids)s::text[]) THEN
        pg_notify(%(channel)s::text, CASE WHEN counts.all = delayed THEN 'later ' ELSE '' END || %(queue)s::text)
    END
FROM t, counts
