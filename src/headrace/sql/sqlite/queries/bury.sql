INSERT INTO headrace_dead (
    queue, id, payload, priority, max_attempts, enqueued, run_at, deadline, died, attempt, fence, cancelled, last_error
)
SELECT
    queue, id, payload, priority, max_attempts, enqueued, run_at, deadline, :died, attempt - :unleased, fence, cancelled,
    coalesce(:error, last_error)
FROM headrace_jobs WHERE pk = :pk
