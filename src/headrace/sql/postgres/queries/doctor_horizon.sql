-- Who holds back what vacuum may remove, in seconds; a slot's age is not known in seconds.
SELECT
    'session', pid::text, application_name, usename::text, state,
    coalesce(extract(epoch FROM clock_timestamp() - coalesce(xact_start, query_start)), 0)::float
FROM pg_stat_activity
WHERE datname = current_database() AND coalesce(backend_xmin, backend_xid) IS NOT NULL AND pid <> pg_backend_pid()
    AND backend_type NOT IN ('autovacuum worker')
UNION ALL
SELECT
    'prepared', gid, '', owner::text, 'prepared', extract(epoch FROM clock_timestamp() - prepared)::float
FROM pg_prepared_xacts WHERE database = current_database()
UNION ALL
SELECT
    'slot', slot_name::text, '', '', CASE WHEN active THEN 'active' ELSE 'inactive' END,
    greatest(age(xmin), age(catalog_xmin))::float
FROM pg_replication_slots WHERE xmin IS NOT NULL OR catalog_xmin IS NOT NULL
