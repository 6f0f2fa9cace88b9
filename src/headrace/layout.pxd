cdef lay(
    payload, id, priority, delay, run_at, deadline, max_attempts, queue, state, attempt, fence, token, enqueued_at, lease_until,
    died_at, last_error, bint cancelled, ref
)
cdef moment(long long micros)
