"""Secrets that tests plant: made at random from their shapes, none stands in the repository."""
