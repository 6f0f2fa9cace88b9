INSERT INTO headrace_jobs (queue, id, payload, priority, max_attempts, enqueued, run_at, deadline, absolute, state, due)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
