"""Whose a run directory is: made in one step, held by one process, and sealed by its user."""
