SELECT
    coalesce(%(now)s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - skew), skew, anchor, paused,
    (
        SELECT true FROM {schema}.jobs j WHERE j.queue = q.queue AND NOT j.delayed AND j.until = 0
        ORDER BY ~j.priority, j.pk LIMIT 1
    ) IS NOT NULL,
    (SELECT j.due FROM {schema}.jobs j WHERE j.queue = q.queue AND j.delayed ORDER BY j.due LIMIT 1),
    (SELECT l.until FROM {schema}.leases l WHERE l.queue = q.queue ORDER BY l.until LIMIT 1)
FROM {schema}.clock, {schema}.queues q WHERE q.queue = %(queue)s
