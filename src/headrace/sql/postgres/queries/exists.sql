SELECT id FROM {schema}.jobs WHERE queue = %(queue)s AND id = ANY (%(ids)s::text[])
