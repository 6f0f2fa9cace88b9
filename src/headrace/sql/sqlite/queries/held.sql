SELECT attempt, max_attempts, cancelled FROM headrace_jobs WHERE pk = ? AND queue = ? AND fence = ? AND state = 2
