"""The compiled twin of ``layout.py``. Jobs and settings are read and written as they lie in memory; that they lie so is
proved here, and an ImportError when they do not, so that the interpreted core takes over."""


def _prove():
    marks = [object() for _ in Job.__struct_fields__]
    made = Job(*marks)
    seen = [
        made.payload, made.id, made.priority, made.delay, made.run_at, made.deadline, made.max_attempts, made.queue,
        made.state, made.attempt, made.fence, made.token, made.enqueued_at, made.lease_until, made.died_at,
        made.last_error, made.cancelled, made.ref,
    ]
    settings = Settings(**{name: mark for name, mark in zip(Settings.__struct_fields__, marks)})
    told = [
        settings.queue, settings.capacity, settings.max_attempts, settings.lease, settings.overflow,
        settings.dead_capacity, settings.deadline_to_dead, settings.max_payload, settings.default_delay,
        settings.default_deadline, settings.clock,
    ]
    if seen != marks or told != marks[:len(told)] or len(told) != len(Settings.__struct_fields__):
        raise ImportError("this msgspec lays its structures out in another way")


for _type, _fields in ((Job, 18), (Settings, 11)):
    # As large as their fields: before that is known, not even a look at them is safe.
    if _type.__basicsize__ != object.__basicsize__ + _fields * tuple.__itemsize__:
        raise ImportError("this msgspec makes structures of another size")
_prove()
