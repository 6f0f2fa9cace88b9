UPDATE headrace_jobs
SET state = :state, due = :due, run_at = :due, absolute = 0, attempt = :attempt,
    last_error = coalesce(:error, last_error)
WHERE pk = :pk
