WITH t AS MATERIALIZED (
    SELECT coalesce(%(now)s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - skew) AS now
    FROM {schema}.clock, {schema}.queues WHERE queue = %(queue)s::int AND salt = %(salt)s::bigint LIMIT 1
), gone AS (
    DELETE FROM {schema}.processed USING t WHERE queue = %(queue)s::int AND at <= now - %(age)s::bigint RETURNING key
)
SELECT (SELECT count(*) FROM gone) FROM t
