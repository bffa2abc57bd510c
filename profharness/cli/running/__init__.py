"""What `run` does behind its line: the steps of a run, continuing one, the text of a plan."""
