UPDATE headrace_jobs SET due = :until WHERE pk = :pk AND queue = :queue AND fence = :fence AND state = 2
RETURNING
    id, payload, priority, max_attempts, enqueued, run_at, deadline, attempt, fence, due, last_error, cancelled, pk
