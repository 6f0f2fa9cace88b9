"""Tasks: functions that can be enqueued. Their settings, their arguments, and how a payload becomes a call again."""
