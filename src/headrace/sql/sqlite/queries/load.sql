SELECT
    c.anchor, c.skew, q.salt, q.paused, q.fence, q.soonest, q.ready, q.delayed, q.inflight, q.dead,
    q.enqueued, q.acked, q.retried, q.expired_leases, q.ack_too_late, q.cancelled, q.taken, q.dropped,
    q.dead_total, q.dead_dropped, q.deadline_missed
FROM headrace_queues q, headrace_clock c
WHERE q.queue = ?
