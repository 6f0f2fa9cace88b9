SELECT
    c.relname::text, s.n_live_tup, s.n_dead_tup, coalesce(s.last_analyze, s.last_autoanalyze) IS NOT NULL,
    pg_total_relation_size(c.oid), c.reloptions
FROM pg_class c JOIN pg_stat_all_tables s ON s.relid = c.oid
WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind = 'r'
ORDER BY c.relname
