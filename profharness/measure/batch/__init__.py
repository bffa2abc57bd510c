"""Jobs of a batch system: the script of one, submitting it, waiting for its end."""
