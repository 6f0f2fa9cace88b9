-- The oldest dead of each id whose id nobody uses, in the order of death. Somebody may take the id meanwhile.
WITH chosen AS MATERIALIZED (
    SELECT * FROM {schema}.dead d
    WHERE queue = %(queue)s AND (%(ids)s::text[] IS NULL OR id = ANY (%(ids)s::text[]))
        AND NOT EXISTS (SELECT FROM {schema}.jobs j WHERE j.queue = d.queue AND j.id = d.id)
        AND pk = (SELECT e.pk FROM {schema}.dead e WHERE e.queue = d.queue AND e.id = d.id ORDER BY e.pk LIMIT 1)
    ORDER BY pk LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), back AS (
    INSERT INTO {schema}.jobs (
        queue, id, payload, priority, max_attempts, enqueued, run_at, due, deadline, absolute, delayed, aged, fence, last_error
    )
    SELECT
        queue, id, payload, priority, max_attempts, enqueued, %(now)s, %(now)s,
        CASE WHEN deadline >= %(today)s THEN deadline END, false, false, true, fence, last_error
    FROM chosen ORDER BY pk
    ON CONFLICT (queue, id) DO NOTHING
    RETURNING id
)
DELETE FROM {schema}.dead WHERE pk = ANY (ARRAY(SELECT pk FROM chosen JOIN back USING (id)))
