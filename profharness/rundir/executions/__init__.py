"""Scans of a command as a run records them: axes, executions, and what scripts marked."""
