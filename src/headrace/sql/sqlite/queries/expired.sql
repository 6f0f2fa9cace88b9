SELECT pk, attempt, max_attempts, cancelled, due FROM headrace_jobs
WHERE queue = :queue AND state <> 1 AND state = 2 AND due <= :now
ORDER BY due, pk
