WITH t AS MATERIALIZED (
    SELECT coalesce(%(now)s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - skew) AS now
    FROM {schema}.clock LIMIT 1
), free AS MATERIALIZED (
    -- Whoever settles a job in a transaction of their own has locked it until their commit, and is not waited for.
    SELECT pk FROM t, {schema}.jobs, unnest(%(jobs)s::bigint[], %(fences)s::bigint[]) AS g (job, fence)
    WHERE pk = g.job AND jobs.fence = g.fence AND until > now
    FOR UPDATE OF jobs SKIP LOCKED
), held AS (
    UPDATE {schema}.jobs SET until = now + %(duration)s FROM t WHERE pk = ANY (ARRAY(SELECT pk FROM free))
    RETURNING
        id, payload, priority, max_attempts, enqueued, run_at, deadline, attempt, fence, until, last_error,
        cancelled, pk
), all_held AS (
    SELECT * FROM held
    UNION ALL
    SELECT
        id, payload, priority, max_attempts, enqueued, run_at, deadline, attempt, jobs.fence, until, last_error,
        cancelled, pk
    FROM t, {schema}.jobs, unnest(%(jobs)s::bigint[], %(fences)s::bigint[]) AS g (job, fence)
    WHERE pk = g.job AND jobs.fence = g.fence AND until > now
        AND pk <> ALL (ARRAY(SELECT pk FROM free))
), leased AS (
    INSERT INTO {schema}.leases (queue, until, jobs)
    SELECT %(queue)s, until, array_agg(pk)
    FROM (SELECT until, pk, (row_number() OVER ()) / 200 AS part FROM held) AS parts
    GROUP BY until, part
), counted AS (
    INSERT INTO {schema}.deltas (queue, ack_too_late)
    SELECT %(queue)s, %(too_late)s * (%(count)s - count(*)) FROM all_held HAVING %(too_late)s * (%(count)s - count(*)) > 0
)
SELECT * FROM all_held
