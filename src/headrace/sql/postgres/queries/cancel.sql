SELECT pk, delayed, until > 0 FROM {schema}.jobs WHERE queue = %(queue)s AND id = %(id)s FOR UPDATE
