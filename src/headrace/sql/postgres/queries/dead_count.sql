SELECT (dead + coalesce((SELECT sum(d.dead) FROM {schema}.deltas d WHERE d.queue = q.queue), 0))::bigint
FROM {schema}.queues q WHERE queue = %(queue)s
