"""Throughput over batch size and over concurrency: fits, knees, jumps, recommended points."""
