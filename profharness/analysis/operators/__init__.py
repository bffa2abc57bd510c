"""Operators of a framework: what they have to do at least."""
