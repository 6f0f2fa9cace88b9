-- Counted row by row, in the same snapshot as the figures.
SELECT
    (SELECT count(*) FROM {schema}.jobs j WHERE j.queue = %(queue)s AND NOT delayed AND until = 0),
    (SELECT count(*) FROM {schema}.jobs j WHERE j.queue = %(queue)s AND delayed AND until = 0),
    (SELECT count(*) FROM {schema}.jobs j WHERE j.queue = %(queue)s AND until > 0),
    (SELECT count(*) FROM {schema}.dead d WHERE d.queue = %(queue)s),
    (SELECT min(died) FROM {schema}.dead d WHERE d.queue = %(queue)s),
    (SELECT count(*) FROM {schema}.deltas d WHERE d.queue = %(queue)s),
    least(
        (SELECT min(due) FROM {schema}.jobs j WHERE j.queue = %(queue)s AND delayed),
        (SELECT min(until) FROM {schema}.leases l WHERE l.queue = %(queue)s)
    ),
    percentile_disc(0.99) WITHIN GROUP (ORDER BY octet_length(payload)),
    max(octet_length(payload))
FROM (SELECT payload FROM {schema}.jobs j WHERE j.queue = %(queue)s LIMIT 10000) AS sample
