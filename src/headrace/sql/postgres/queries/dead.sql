SELECT
    id, payload, priority, max_attempts, enqueued, run_at, deadline, attempt, fence, died, last_error, cancelled, pk
FROM {schema}.dead WHERE queue = %(queue)s AND pk > %(after)s ORDER BY pk LIMIT %(limit)s
