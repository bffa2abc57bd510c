"""What a replay needs of runs and trace files: their operators, and how these were recorded."""
