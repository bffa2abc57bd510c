"""The files of a run that its figures come from, and their hashes."""
