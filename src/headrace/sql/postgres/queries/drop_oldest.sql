-- The place in line tells the age of all but the aged. Ready jobs go first, then delayed ones.
WITH ready AS (
    (
        SELECT pk, enqueued, delayed FROM {schema}.jobs
        WHERE queue = %(queue)s AND NOT delayed AND until = 0 ORDER BY pk LIMIT %(limit)s
    )
    UNION
    (
        SELECT pk, enqueued, delayed FROM {schema}.jobs
        WHERE queue = %(queue)s AND aged AND NOT delayed AND until = 0 ORDER BY enqueued LIMIT %(limit)s
    )
), waiting AS (
    (SELECT * FROM ready ORDER BY enqueued, pk LIMIT %(limit)s)
    UNION ALL
    (
        SELECT pk, enqueued, delayed FROM {schema}.jobs
        WHERE queue = %(queue)s AND delayed ORDER BY enqueued, pk LIMIT (
            SELECT %(limit)s - least(%(limit)s, count(*)) FROM ready
        )
    )
), picked AS (
    SELECT jobs.pk, jobs.delayed FROM waiting JOIN {schema}.jobs USING (pk) WHERE until = 0
    ORDER BY jobs.pk FOR UPDATE OF jobs SKIP LOCKED
)
DELETE FROM {schema}.jobs USING picked WHERE jobs.pk = picked.pk RETURNING picked.delayed
