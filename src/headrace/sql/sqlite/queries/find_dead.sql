SELECT
    id, payload, priority, max_attempts, enqueued, run_at, deadline, attempt, fence, died, last_error, cancelled, pk
FROM headrace_dead WHERE queue = ? AND id = ? ORDER BY pk DESC LIMIT 1
