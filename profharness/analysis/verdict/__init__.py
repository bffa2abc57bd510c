"""What holds a window back, and whether the trace can carry that statement."""
