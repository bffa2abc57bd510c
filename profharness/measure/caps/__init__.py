"""The axis `power-cap`: what may be set, setting it before each execution, and what a run left."""
