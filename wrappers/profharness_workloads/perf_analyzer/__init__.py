"""The worker that has NVIDIA's perf_analyzer make a server's load."""
