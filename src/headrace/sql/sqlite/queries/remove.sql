DELETE FROM headrace_jobs WHERE pk = :pk
