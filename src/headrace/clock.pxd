# Numbers of clock.py that the compiled core works with.
cdef long long FAR, SECOND
