"""The current telemetry of this node for Prometheus: an HTTP server beside the sampler."""
