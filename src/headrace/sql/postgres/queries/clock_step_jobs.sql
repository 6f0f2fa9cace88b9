UPDATE {schema}.jobs SET due = due - %(change)s, run_at = due - %(change)s WHERE delayed AND absolute
