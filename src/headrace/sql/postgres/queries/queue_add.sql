INSERT INTO {schema}.queues (name, salt) VALUES (%(name)s, %(salt)s) ON CONFLICT (name) DO NOTHING
