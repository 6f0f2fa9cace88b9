-- What ack.sql does, for jobs that were all claimed at once, as most are: one fence, and no join.
WITH t AS MATERIALIZED (
    SELECT coalesce(%(now)s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - skew) AS now
    FROM {schema}.clock LIMIT 1
), done AS (
    DELETE FROM {schema}.jobs USING t
    WHERE pk = ANY (%(jobs)s::bigint[]) AND jobs.fence = %(fence)s AND until > now
    RETURNING pk
), counted AS (
    INSERT INTO {schema}.deltas (queue, inflight, acked, ack_too_late)
    SELECT %(queue)s, -count(*), count(*), %(count)s - count(*) FROM done
)
SELECT pk FROM done
