SELECT queue, salt, '{schema}.queues'::regclass::oid::bigint FROM {schema}.queues WHERE name = %(name)s
