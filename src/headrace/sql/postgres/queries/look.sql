SELECT
    coalesce(%(now)s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - skew), skew, paused,
    first.rank, first.pk,
    (SELECT j.due FROM {schema}.jobs j WHERE j.queue = q.queue AND j.delayed ORDER BY j.due LIMIT 1),
    (SELECT l.until FROM {schema}.leases l WHERE l.queue = q.queue ORDER BY l.until LIMIT 1)
FROM {schema}.clock CROSS JOIN {schema}.queues q
LEFT JOIN LATERAL (
    SELECT ~j.priority AS rank, j.pk FROM {schema}.jobs j
    WHERE j.queue = q.queue AND NOT j.delayed AND j.until = 0
        AND (~j.priority, j.pk) >= (%(rank)s::int, %(place)s::bigint)
    ORDER BY ~j.priority, j.pk LIMIT 1
) AS first ON true
WHERE q.queue = %(queue)s
