"""Logs and profiles that runtimes and other programs write: HIP, MIOpen, onnxruntime,
perf_analyzer, rocprof-sys.
"""
