SELECT (ready + delayed + inflight + coalesce(
    (SELECT sum(d.ready + d.delayed + d.inflight) FROM {schema}.deltas d WHERE d.queue = q.queue), 0
))::bigint
FROM {schema}.queues q WHERE queue = %(queue)s
