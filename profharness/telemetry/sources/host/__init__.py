"""The host: processes, control group, network, pressure, power of CPUs and node."""
