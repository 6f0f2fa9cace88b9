UPDATE headrace_jobs SET cancelled = 1 WHERE pk = :pk
