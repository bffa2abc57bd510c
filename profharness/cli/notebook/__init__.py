"""What measures from Python: a block of this process, and a run in a process of its own."""
