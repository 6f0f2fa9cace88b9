SELECT pk, enqueued FROM headrace_jobs
WHERE queue = ? AND state <> 2 AND state = 1 ORDER BY enqueued, pk LIMIT 1
