UPDATE {schema}.queues SET paused = %(paused)s WHERE queue = %(queue)s
