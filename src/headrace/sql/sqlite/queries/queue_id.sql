SELECT queue FROM headrace_queues WHERE name = ?
