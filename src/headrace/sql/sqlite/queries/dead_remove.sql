DELETE FROM headrace_dead WHERE pk = ?
