WITH gone AS (
    DELETE FROM {schema}.dead
    WHERE pk = ANY (ARRAY(
        SELECT pk FROM {schema}.dead
        WHERE queue = %(queue)s AND died <= (
            SELECT coalesce(%(now)s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - skew)
            FROM {schema}.clock
        ) - %(keep)s
        ORDER BY died LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    ))
    RETURNING 1
), counted AS (
    INSERT INTO {schema}.deltas (queue, dead, dropped)
    SELECT %(queue)s, -count(*), count(*) FROM gone HAVING count(*) > 0
)
SELECT count(*) FROM gone
