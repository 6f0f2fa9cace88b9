SELECT 1 FROM headrace_jobs WHERE queue = ? AND id = ?
