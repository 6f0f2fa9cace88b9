"""The queue in an SQLite file: the embedded default, one machine, many processes."""
