WITH RECURSIVE d AS MATERIALIZED (
    SELECT
        coalesce(sum(ready), 0) AS ready, coalesce(sum(delayed), 0) AS delayed, coalesce(sum(inflight), 0) AS inflight,
        coalesce(sum(dead), 0) AS dead, coalesce(sum(enqueued), 0) AS enqueued, coalesce(sum(acked), 0) AS acked,
        coalesce(sum(retried), 0) AS retried, coalesce(sum(expired_leases), 0) AS expired_leases,
        coalesce(sum(ack_too_late), 0) AS ack_too_late, coalesce(sum(cancelled), 0) AS cancelled,
        coalesce(sum(taken), 0) AS taken, coalesce(sum(dropped), 0) AS dropped,
        coalesce(sum(dead_total), 0) AS dead_total, coalesce(sum(dead_dropped), 0) AS dead_dropped,
        coalesce(sum(deadline_missed), 0) AS deadline_missed
    FROM {schema}.deltas WHERE queue = %(queue)s
), heads AS (
    -- The first of each priority that waits, from one priority to the next.
    (
        SELECT ~priority AS rank, enqueued FROM {schema}.jobs
        WHERE queue = %(queue)s AND NOT delayed AND until = 0 ORDER BY ~priority, pk LIMIT 1
    )
    UNION ALL
    SELECT next.rank, next.enqueued FROM heads, LATERAL (
        SELECT ~priority AS rank, enqueued FROM {schema}.jobs
        WHERE queue = %(queue)s AND NOT delayed AND until = 0 AND ~priority > heads.rank ORDER BY ~priority, pk LIMIT 1
    ) AS next
)
SELECT
    coalesce(%(now)s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - skew),
    least(
        (SELECT min(enqueued) FROM heads),
        (SELECT min(enqueued) FROM {schema}.jobs WHERE queue = %(queue)s AND aged AND NOT delayed AND until = 0)
    ),
    paused,
    (q.ready + d.ready)::bigint, (q.delayed + d.delayed)::bigint, (q.inflight + d.inflight)::bigint,
    (q.dead + d.dead)::bigint, (q.enqueued + d.enqueued)::bigint, (q.acked + d.acked)::bigint,
    (q.retried + d.retried)::bigint, (q.expired_leases + d.expired_leases)::bigint,
    (q.ack_too_late + d.ack_too_late)::bigint, (q.cancelled + d.cancelled)::bigint, (q.taken + d.taken)::bigint,
    (q.dropped + d.dropped)::bigint, (q.dead_total + d.dead_total)::bigint, (q.dead_dropped + d.dead_dropped)::bigint,
    (q.deadline_missed + d.deadline_missed)::bigint
FROM {schema}.clock, {schema}.queues q, d WHERE q.queue = %(queue)s
