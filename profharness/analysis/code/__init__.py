"""Lines and instructions of kernels: which ones waves were at, and what held them there."""
