UPDATE {schema}.jobs SET
    until = 0, due = g.due, run_at = g.due, delayed = g.due > %(now)s, absolute = false, attempt = g.attempt,
    last_error = coalesce(g.error, last_error)
FROM unnest(%(jobs)s::bigint[], %(dues)s::bigint[], %(attempts)s::int[], %(errors)s::text[])
    AS g (job, due, attempt, error)
WHERE pk = g.job
