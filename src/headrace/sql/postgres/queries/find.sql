SELECT
    delayed, id, payload, priority, max_attempts, enqueued, run_at, deadline, attempt, fence,
    CASE WHEN until > 0 THEN until ELSE due END, last_error, cancelled, pk, until > 0
FROM {schema}.jobs WHERE queue = %(queue)s AND id = %(id)s
