SELECT pk, id FROM headrace_dead WHERE queue = :queue ORDER BY pk
