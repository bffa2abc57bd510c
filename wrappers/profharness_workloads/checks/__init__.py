"""Small programs that `calibrate` and `doctor --try` start."""
