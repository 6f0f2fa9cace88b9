"""The queue in PostgreSQL: many machines, and jobs that are enqueued in the caller's own transactions."""
