-- Gives jobs and their attempts back, each to its old place in line: those whose lease holds. Without a bell see settle.sql.
WITH t AS MATERIALIZED (
    SELECT coalesce(%(now)s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - skew) AS now
    FROM {schema}.clock LIMIT 1
), held AS MATERIALIZED (
    SELECT pk, cancelled, now FROM t, {schema}.jobs, unnest(%(jobs)s::bigint[], %(fences)s::bigint[]) AS g (job, fence)
    WHERE pk = g.job AND jobs.fence = g.fence AND queue = %(queue)s::int AND until > now
    FOR UPDATE OF jobs
), back AS (
    UPDATE {schema}.jobs SET
        until = 0, due = now + %(delay)s::bigint, run_at = now + %(delay)s::bigint, delayed = %(delay)s::bigint > 0,
        absolute = false, attempt = attempt - 1
    FROM t WHERE pk = ANY (ARRAY(SELECT pk FROM held WHERE NOT cancelled))
), gone AS (
    DELETE FROM {schema}.jobs WHERE pk = ANY (ARRAY(SELECT pk FROM held WHERE cancelled))
), counts AS (
    SELECT count(*) AS held, count(*) FILTER (WHERE NOT cancelled) AS back FROM held
), counted AS (
    INSERT INTO {schema}.deltas (queue, ready, delayed, inflight, ack_too_late, cancelled)
    SELECT
        %(queue)s::int, CASE WHEN %(delay)s::bigint > 0 THEN 0 ELSE back END,
        CASE WHEN %(delay)s::bigint > 0 THEN back ELSE 0 END, -held, %(count)s::int - held, held - back
    FROM counts
), rung AS MATERIALIZED (
    SELECT CASE
        WHEN back = 0 THEN NULL
        WHEN pg_try_advisory_xact_lock_shared(%(bell)s::bigint) IS NOT TRUE THEN
            pg_notify(%(channel)s::text, CASE WHEN %(delay)s::bigint > 0 THEN 'later ' ELSE '' END || %(queue)s::text)
    END
    FROM counts
)
SELECT t.now, txid_current(), pk, cancelled, rung.* FROM t CROSS JOIN rung LEFT JOIN held ON true
