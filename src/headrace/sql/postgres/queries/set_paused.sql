UPDATE {schema}.queues SET paused = %(paused)s WHERE queue = %(queue)s
RETURNING CASE
    WHEN paused THEN NULL
    WHEN NOT pg_try_advisory_xact_lock_shared(%(bell)s) THEN pg_notify(%(channel)s, %(queue)s::text)
END
