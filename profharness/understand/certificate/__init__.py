"""Certificates of runs: made from a run, read back, and recomputed from it."""
