"""How well kernels used the device: layout copies, precision, tiles, company."""
