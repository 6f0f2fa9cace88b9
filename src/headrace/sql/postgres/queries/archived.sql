SELECT
    id, payload, priority, max_attempts, enqueued + skew, run_at + skew, deadline, attempt, fence, last_error, done + skew
FROM {schema}.clock, {schema}.archive a
WHERE a.queue = (SELECT queue FROM {schema}.queues WHERE name = %(name)s) AND (%(id)s::text IS NULL OR id = %(id)s)
ORDER BY done DESC LIMIT %(limit)s
