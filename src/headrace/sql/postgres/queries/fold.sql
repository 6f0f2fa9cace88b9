WITH gone AS (
    DELETE FROM {schema}.deltas
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM {schema}.deltas WHERE queue = %(queue)s LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    ))
    RETURNING *
), s AS (
    SELECT
        count(*) AS rows, sum(ready) AS ready, sum(delayed) AS delayed, sum(inflight) AS inflight, sum(dead) AS dead,
        sum(enqueued) AS enqueued, sum(acked) AS acked, sum(retried) AS retried, sum(expired_leases) AS expired_leases,
        sum(ack_too_late) AS ack_too_late, sum(cancelled) AS cancelled, sum(taken) AS taken, sum(dropped) AS dropped,
        sum(dead_total) AS dead_total, sum(dead_dropped) AS dead_dropped, sum(deadline_missed) AS deadline_missed
    FROM gone
)
UPDATE {schema}.queues q SET
    ready = q.ready + s.ready, delayed = q.delayed + s.delayed, inflight = q.inflight + s.inflight,
    dead = q.dead + s.dead, enqueued = q.enqueued + s.enqueued, acked = q.acked + s.acked,
    retried = q.retried + s.retried, expired_leases = q.expired_leases + s.expired_leases,
    ack_too_late = q.ack_too_late + s.ack_too_late, cancelled = q.cancelled + s.cancelled, taken = q.taken + s.taken,
    dropped = q.dropped + s.dropped, dead_total = q.dead_total + s.dead_total,
    dead_dropped = q.dead_dropped + s.dead_dropped, deadline_missed = q.deadline_missed + s.deadline_missed
FROM s WHERE q.queue = %(queue)s AND s.rows > 0
