"""Two runs against each other: what changed, why, and what is noise."""
