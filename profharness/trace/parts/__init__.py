"""Parts of a trace: by time, step, point, rank or source, and few records that stand for many."""
