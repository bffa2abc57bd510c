"""Graphs of a device: what was captured into them, and which operators their replays run."""
