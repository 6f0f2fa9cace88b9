WITH s AS (SELECT name, setting, reset_val FROM pg_settings)
SELECT
    current_setting('server_version_num')::int / 10000,
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    pg_is_in_recovery() OR current_setting('default_transaction_read_only')::bool,
    (SELECT min(setting) = 'on' FROM s WHERE name IN ('autovacuum', 'track_counts')),
    current_setting('fsync')::bool,
    current_setting('synchronous_commit'),
    (SELECT reset_val::bigint FROM s WHERE name = 'idle_in_transaction_session_timeout'),
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type IN ('client backend', 'walsender'))::int,
    pg_has_role('pg_read_all_stats', 'USAGE')
