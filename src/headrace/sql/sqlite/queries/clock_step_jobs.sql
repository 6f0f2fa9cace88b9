UPDATE headrace_jobs SET due = due - :change, run_at = run_at - :change WHERE state <> 1 AND state = 0 AND absolute = 1
