"""Long runs, many points, many requests and many runs: what they take, and whether anything is lost."""
