WITH t AS MATERIALIZED (
    SELECT coalesce(%(now)s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - skew) AS now
    FROM {schema}.clock, {schema}.queues WHERE queue = %(queue)s::int AND salt = %(salt)s::bigint LIMIT 1
), new AS (
    INSERT INTO {schema}.processed (queue, key, at) SELECT %(queue)s::int, %(key)s::text, now FROM t
    ON CONFLICT (queue, key) DO NOTHING
    RETURNING key
)
SELECT EXISTS (SELECT FROM new) FROM t
