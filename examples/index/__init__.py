"""An index of every Python file of this interpreter: one job per file, done by workers that may be killed."""
