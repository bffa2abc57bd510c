"""A tool around a workload from start to end: how each ended, what the hooks reported, what is
missing and why.
"""
