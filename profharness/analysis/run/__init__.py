"""A whole run: its trials, steps, passes and points, joined into one summary."""
