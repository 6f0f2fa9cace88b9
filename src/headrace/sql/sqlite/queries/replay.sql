INSERT INTO headrace_jobs (
    queue, id, payload, priority, max_attempts, enqueued, run_at, deadline, absolute, state, due, fence, last_error
)
SELECT
    queue, id, payload, priority, max_attempts, enqueued, :now, CASE WHEN deadline >= :today THEN deadline END, 0, 1,
    :now, fence, last_error
FROM headrace_dead WHERE pk = :pk
