"""Hardware counters of whole AMD devices, read beside a workload that runs untouched."""
