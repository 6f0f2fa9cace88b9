INSERT INTO {schema}.deltas (
    queue, ready, delayed, inflight, dead, enqueued, acked, retried, expired_leases, ack_too_late, cancelled, taken,
    dropped, dead_total, dead_dropped, deadline_missed
) VALUES (
    %(queue)s, %(ready)s, %(delayed)s, %(inflight)s, %(dead)s, %(enqueued)s, %(acked)s, %(retried)s,
    %(expired_leases)s, %(ack_too_late)s, %(cancelled)s, %(taken)s, %(dropped)s, %(dead_total)s, %(dead_dropped)s,
    %(deadline_missed)s
)
RETURNING txid_current(), CASE
    WHEN ready <= 0 THEN NULL
    WHEN NOT pg_try_advisory_xact_lock_shared(%(bell)s) THEN pg_notify(%(channel)s, %(queue)s::text)
END
