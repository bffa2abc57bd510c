"""What telemetry is called outside: names and units of time series for Prometheus and its kin."""
