"""The workload folders of rocprof-compute (Omniperf)."""
