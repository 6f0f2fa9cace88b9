SELECT min(due) FROM headrace_jobs WHERE queue = :queue AND state <> 1
