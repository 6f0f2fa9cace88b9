DELETE FROM {schema}.leases
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {schema}.leases
    WHERE queue = %(queue)s AND until <= %(now)s ORDER BY until LIMIT %(limit)s FOR UPDATE SKIP LOCKED
))
RETURNING jobs
