DELETE FROM {schema}.dead
WHERE pk = ANY (ARRAY(
    SELECT pk FROM {schema}.dead WHERE queue = %(queue)s ORDER BY pk LIMIT %(limit)s FOR UPDATE SKIP LOCKED
))
RETURNING
    id, payload, priority, max_attempts, enqueued, run_at, deadline, attempt, fence, died, last_error, cancelled, pk
