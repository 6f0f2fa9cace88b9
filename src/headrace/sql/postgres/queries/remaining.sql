-- Waits for whoever is about to remove them.
SELECT pk FROM {schema}.jobs WHERE pk = ANY (%(jobs)s::bigint[]) AND queue = %(queue)s ORDER BY pk FOR UPDATE
