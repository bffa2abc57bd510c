"""Damaged inputs through our reader and through those of others."""
