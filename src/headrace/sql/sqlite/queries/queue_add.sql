INSERT INTO headrace_queues (name, salt) VALUES (:name, :salt) ON CONFLICT (name) DO NOTHING
