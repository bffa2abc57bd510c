"""Kineto's Chrome JSON, as torch.profiler exports it."""
