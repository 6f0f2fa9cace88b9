WITH gone AS (
    DELETE FROM {schema}.jobs
    USING unnest(%(jobs)s::bigint[], %(dieds)s::bigint[], %(errors)s::text[]) WITH ORDINALITY
        AS g (job, died, error, number)
    WHERE pk = g.job
    RETURNING jobs.*, g.died, g.error, g.number
)
INSERT INTO {schema}.dead (
    queue, id, payload, priority, max_attempts, enqueued, run_at, deadline, died, attempt, fence, cancelled, last_error
)
SELECT
    queue, id, payload, priority, max_attempts, enqueued, run_at, deadline, died, attempt - %(unleased)s, fence, cancelled,
    coalesce(error, last_error)
FROM gone ORDER BY number LIMIT %(room)s
