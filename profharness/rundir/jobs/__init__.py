"""Batch jobs: which run one makes, and how it ended."""
