"""Scans of a command: one execution per point and repeat, and what each came to."""
