"""Training programs that run by name: ordinary scripts, profiled as commands."""
