"""Scans of a command over several axes: what each axis is worth, the best point, curves."""
