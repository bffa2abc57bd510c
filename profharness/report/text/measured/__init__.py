"""Figures of a window or a point as lines: the measured ones, what repeats, and what is missing."""
