"""The queue in memory: for tests, and for work that may be lost with the process."""
