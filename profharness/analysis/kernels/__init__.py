"""Kernels: groups, categories, work, occupancy, counters and the roofline."""
