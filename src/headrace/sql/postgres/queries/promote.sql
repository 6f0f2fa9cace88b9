WITH t AS MATERIALIZED (
    SELECT coalesce(%(now)s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - skew) AS now
    FROM {schema}.clock LIMIT 1
), moved AS (
    UPDATE {schema}.jobs SET delayed = false
    WHERE pk = ANY (ARRAY(
        SELECT pk FROM t, {schema}.jobs
        WHERE queue = %(queue)s AND delayed AND due <= now ORDER BY due LIMIT %(limit)s FOR UPDATE OF jobs SKIP LOCKED
    ))
    RETURNING pk
), counted AS (
    INSERT INTO {schema}.deltas (queue, ready, delayed)
    SELECT %(queue)s, count(*), -count(*) FROM moved HAVING count(*) > 0
)
SELECT count(*) FROM moved
