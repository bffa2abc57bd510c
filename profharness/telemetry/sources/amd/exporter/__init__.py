"""Hardware counters of AMD devices as an exporter publishes them, which the user named."""
