-- What ack.sql does, for jobs that were all claimed at once, as most are: one fence, and no join.
WITH t AS MATERIALIZED (
    SELECT coalesce(%(now)s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - skew) AS now
    FROM {schema}.clock LIMIT 1
), done AS (
    DELETE FROM {schema}.jobs USING t
    WHERE pk = ANY (%(jobs)s::bigint[]) AND jobs.fence = %(fence)s AND until > now
    RETURNING pk, until
), over AS (
    -- When all of the claim is done, nobody need look for its leases any more.
    DELETE FROM {schema}.leases AS l USING (SELECT min(until) AS until, count(*) AS size FROM done) AS d
    WHERE l.queue = %(queue)s AND l.until = d.until AND l.fence = %(fence)s AND l.size = d.size
), counted AS (
    INSERT INTO {schema}.deltas (queue, inflight, acked, ack_too_late)
    SELECT %(queue)s, -count(*), count(*), %(count)s - count(*) FROM done
)
SELECT pk FROM done
