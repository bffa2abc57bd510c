"""What the host was in at each instant: operators, ranges, Python, waiting, or nothing known."""
