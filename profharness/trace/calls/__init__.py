"""Calls of operators as records: what a replay is given of them, and what it answers."""
