DELETE FROM headrace_jobs WHERE pk IN (
    SELECT pk FROM headrace_jobs WHERE queue = :queue AND state <> 1 AND state = 0 ORDER BY due, pk LIMIT :count
)
