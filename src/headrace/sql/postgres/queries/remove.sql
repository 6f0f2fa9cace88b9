DELETE FROM {schema}.jobs WHERE pk = ANY (%(jobs)s::bigint[]) RETURNING pk
