DELETE FROM headrace_jobs WHERE pk IN (
    SELECT pk FROM headrace_jobs
    WHERE queue = :queue AND state <> 2 AND state = :state ORDER BY enqueued, pk LIMIT :count
)
