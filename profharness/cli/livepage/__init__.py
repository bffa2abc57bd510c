"""What `run --live-page` starts: a server in a process of its own that reads the run's files."""
