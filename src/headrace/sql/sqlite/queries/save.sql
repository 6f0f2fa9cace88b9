UPDATE headrace_queues SET
    paused = ?, fence = ?, soonest = ?, ready = ?, delayed = ?, inflight = ?, dead = ?,
    enqueued = ?, acked = ?, retried = ?, expired_leases = ?, ack_too_late = ?, cancelled = ?, taken = ?, dropped = ?,
    dead_total = ?, dead_dropped = ?, deadline_missed = ?
WHERE queue = ?
