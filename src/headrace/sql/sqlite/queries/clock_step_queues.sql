UPDATE headrace_queues SET soonest = 0
