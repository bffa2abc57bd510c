"""Clocks: every source on one axis, how far that can be trusted, and what cause and effect say
about it.
"""
