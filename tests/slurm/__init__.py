"""Jobs under a real Slurm of two virtual nodes, and under stand-ins where it is not installed."""
