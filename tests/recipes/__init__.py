"""The recipes of `packaging/` by which centres install."""
