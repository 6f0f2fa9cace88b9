UPDATE headrace_jobs SET state = 2, due = :until, attempt = attempt + 1, fence = :fence
WHERE pk IN (
    SELECT pk FROM headrace_jobs WHERE queue = :queue AND state = 1 ORDER BY priority DESC, pk LIMIT :limit
)
RETURNING
    id, payload, priority, max_attempts, enqueued, run_at, deadline, attempt, fence, due, last_error, cancelled, pk
