UPDATE headrace_jobs SET state = 1 WHERE queue = :queue AND state <> 1 AND state = 0 AND due <= :now
