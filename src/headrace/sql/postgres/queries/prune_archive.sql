WITH gone AS (
    DELETE FROM {schema}.archive
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM {schema}.archive
        WHERE queue = %(queue)s AND done <= (
            SELECT coalesce(%(now)s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - skew)
            FROM {schema}.clock
        ) - %(keep)s
        ORDER BY done LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    ))
    RETURNING 1
)
SELECT count(*) FROM gone
