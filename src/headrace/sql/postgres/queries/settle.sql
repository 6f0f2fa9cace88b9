-- Ends a lease, if it holds, otherwise than by ack or release: cancelled where somebody asked for that, dead, or back in its old
-- place in line. Without a bell, in a transaction of the caller's, no lock is held until its commit: it rings whoever sleeps.
WITH t AS MATERIALIZED (
    SELECT coalesce(%(now)s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - skew) AS now
    FROM {schema}.clock LIMIT 1
), held AS MATERIALIZED (
    SELECT jobs.*, now, CASE
        WHEN %(how)s::text = 'bury' THEN 'dead'
        WHEN cancelled OR %(how)s::text = 'cancel' THEN 'cancelled'
        WHEN %(how)s::text = 'nack' AND attempt >= max_attempts THEN 'dead'
        ELSE 'back'
    END AS fate
    FROM t, {schema}.jobs
    WHERE pk = %(job)s::bigint AND fence = %(fence)s::bigint AND queue = %(queue)s::int AND until > now
    FOR UPDATE OF jobs
), back AS (
    UPDATE {schema}.jobs SET
        until = 0, due = now + %(delay)s::bigint, run_at = now + %(delay)s::bigint, delayed = %(delay)s::bigint > 0,
        absolute = false, last_error = coalesce(%(error)s::text, jobs.last_error)
    FROM held WHERE jobs.pk = held.pk AND fate = 'back'
), gone AS (
    DELETE FROM {schema}.jobs USING held WHERE jobs.pk = held.pk AND fate <> 'back'
), kept AS (
    INSERT INTO {schema}.dead (
        queue, id, payload, priority, max_attempts, enqueued, run_at, deadline, died, attempt, fence, cancelled,
        last_error
    )
    SELECT
        queue, id, payload, priority, max_attempts, enqueued, run_at, deadline, now, attempt, fence, cancelled,
        coalesce(%(error)s::text, last_error)
    FROM held WHERE fate = 'dead' AND (%(dead_capacity)s::bigint IS NULL OR %(dead_capacity)s::bigint > (
        SELECT q.dead + coalesce((SELECT sum(d.dead) FROM {schema}.deltas d WHERE d.queue = q.queue), 0)
        FROM {schema}.queues q WHERE q.queue = %(queue)s::int
    ))
    RETURNING pk
), counts AS (
    SELECT
        count(*) AS held, count(*) FILTER (WHERE fate = 'back') AS back, count(*) FILTER (WHERE fate = 'dead') AS dead,
        count(*) FILTER (WHERE fate = 'cancelled') AS cancelled, (SELECT count(*) FROM kept) AS kept
    FROM held
), counted AS (
    INSERT INTO {schema}.deltas (
        queue, ready, delayed, inflight, dead, retried, ack_too_late, cancelled, dead_total, dead_dropped
    )
    SELECT
        %(queue)s::int, CASE WHEN %(delay)s::bigint > 0 THEN 0 ELSE back END,
        CASE WHEN %(delay)s::bigint > 0 THEN back ELSE 0 END, -held, kept,
        back, 1 - held, cancelled, dead, dead - kept
    FROM counts
)
SELECT
    t.now, txid_current(), fate,
    CASE
        WHEN fate IS DISTINCT FROM 'back' THEN NULL
        WHEN pg_try_advisory_xact_lock_shared(%(bell)s::bigint) IS NOT TRUE THEN
            pg_notify(%(channel)s::text, CASE WHEN %(delay)s::bigint > 0 THEN 'later ' ELSE '' END || %(queue)s::text)
    END
FROM t LEFT JOIN held ON true
