SELECT boot, anchor, skew FROM headrace_clock
