SELECT name FROM {schema}.queues ORDER BY name
