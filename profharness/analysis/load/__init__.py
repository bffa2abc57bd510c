"""Levels of load on a server: what is wrong with one, and what sharing costs."""
