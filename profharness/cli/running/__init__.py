"""What `run` does behind its line: the steps of a run, going on with one, the text of a plan."""
