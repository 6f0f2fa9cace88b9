-- A batch that is there as it was put in: all of it or nothing.
SELECT
    coalesce(%(now)s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - min(skew)), min(skew),
    count(*) FILTER (WHERE NOT delayed AND until = 0), min(due) FILTER (WHERE delayed), NULL
FROM {schema}.clock, {schema}.jobs JOIN unnest(%(ids)s::text[], %(payloads)s::bytea[]) AS g (id, payload) USING (id, payload)
WHERE queue = %(queue)s
HAVING count(DISTINCT id) = cardinality(%(ids)s::text[])
