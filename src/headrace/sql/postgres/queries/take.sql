WITH t AS MATERIALIZED (
    SELECT coalesce(%(now)s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - skew) AS now
    FROM {schema}.clock, {schema}.queues WHERE queue = %(queue)s AND NOT paused LIMIT 1
), lease AS MATERIALIZED (
    SELECT now + %(lease)s AS until, nextval('{schema}.fences') AS fence FROM t
    WHERE now <= coalesce(%(before)s::bigint, now)  -- else nobody waits for the answer any more
), taken AS (
    UPDATE {schema}.jobs SET until = lease.until, fence = lease.fence, attempt = attempt + 1
    FROM lease
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM {schema}.jobs
        WHERE queue = %(queue)s AND NOT delayed AND until = 0 AND (~priority, pk) >= (%(rank)s, %(place)s)
        ORDER BY ~priority, pk LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    ))
    RETURNING
        id, payload, priority, max_attempts, enqueued, run_at, deadline, attempt, jobs.fence, jobs.until, last_error,
        cancelled, pk
), leased AS (
    INSERT INTO {schema}.leases (queue, until, fence, size, jobs)
    SELECT %(queue)s, until, fence, (SELECT count(*) FROM taken), array_agg(pk)
    FROM (SELECT until, fence, pk, (row_number() OVER ()) / 200 AS part FROM taken) AS parts
    GROUP BY until, fence, part
), counted AS (
    INSERT INTO {schema}.deltas (queue, ready, inflight)
    SELECT %(queue)s, -count(*), count(*) FROM taken HAVING count(*) > 0
)
SELECT * FROM taken
