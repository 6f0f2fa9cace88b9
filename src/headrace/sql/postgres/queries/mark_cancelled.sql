UPDATE {schema}.jobs SET cancelled = true WHERE pk = %(job)s
