"""The settings of a queue in PostgreSQL beside those that every queue has; what else is in its URL is the driver's."""

OPTIONS = ("schema", "connections", "patience", "poll", "migrate", "direct", "archive", "dead_keep")
