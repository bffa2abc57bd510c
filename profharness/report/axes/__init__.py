"""A scan of a command over several axes, in words, tables and plots, for all forms."""
