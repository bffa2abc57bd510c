"""How well kernels used the device: layout and casts, precision, tiles, contention."""
