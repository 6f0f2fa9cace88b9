DELETE FROM headrace_jobs WHERE pk IN (
    SELECT pk FROM headrace_jobs WHERE queue = :queue AND state = 1 ORDER BY enqueued, pk LIMIT :count
)
