"""Workers of scans over batch sizes, one per framework."""
