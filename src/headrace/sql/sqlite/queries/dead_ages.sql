SELECT pk, died FROM headrace_dead WHERE queue = :queue ORDER BY pk LIMIT :limit
