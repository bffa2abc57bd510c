"""Short kernels that recur in the same order on one stream: what fusing or capturing them saves."""
