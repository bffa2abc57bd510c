"""Where time went inside of kernels: samples of the program counter, and thread traces."""
