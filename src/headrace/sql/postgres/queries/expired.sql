-- What somebody is settling in a transaction of their own is not waited for, but looked at again a little later.
WITH over AS MATERIALIZED (
    SELECT pk, attempt, max_attempts, cancelled, until FROM {schema}.jobs
    WHERE pk = ANY (%(jobs)s::bigint[]) AND until > 0 AND until <= %(now)s
    ORDER BY pk FOR UPDATE SKIP LOCKED
), again AS (
    INSERT INTO {schema}.leases (queue, until, jobs)
    SELECT %(queue)s, %(now)s + %(pause)s, array_agg(pk) FROM {schema}.jobs
    WHERE pk = ANY (%(jobs)s::bigint[]) AND until > 0 AND until <= %(now)s
        AND pk <> ALL (ARRAY(SELECT pk FROM over))
    HAVING count(*) > 0
)
SELECT * FROM over
