"""Figures of many files at once, each worked out in a process of its own."""
