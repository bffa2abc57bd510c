"""How well devices were used: operators and kernels against the ceilings, and their counters."""
