SELECT name FROM headrace_queues ORDER BY name
