"""Recurring sequences of short kernels as tables, for all forms of `hotspots --by sequence`."""
