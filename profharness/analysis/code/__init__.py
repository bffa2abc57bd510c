"""Lines and instructions of kernels: where waves were, and what they waited for."""
