"""profharness: is this accelerator saturated by this workload, and if not, what holds it back?

The package itself imports nothing heavy, so that the telemetry sampler and `--help` start fast.
"""

__version__ = "0.1.0"
