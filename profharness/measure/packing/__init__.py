"""Profiles of a run that has been measured, compressed."""
