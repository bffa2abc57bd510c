"""A run directory while it is measured: created, held by this process, and released."""
