SELECT pk, attempt, max_attempts, cancelled, until FROM {schema}.jobs
WHERE pk = %(job)s AND fence = %(fence)s AND until > %(now)s
FOR UPDATE
