SELECT
    state, id, payload, priority, max_attempts, enqueued, run_at, deadline, attempt, fence, due, last_error, cancelled, pk
FROM headrace_jobs WHERE queue = ? AND id = ?
