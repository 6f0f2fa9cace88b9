SELECT
    id, payload, priority, max_attempts, enqueued, run_at, deadline, attempt, fence, died, last_error, cancelled, pk
FROM headrace_dead WHERE queue = :queue AND pk > :after ORDER BY pk LIMIT :limit
