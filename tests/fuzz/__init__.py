"""Readers under atheris, guided by the branches that an input reaches: `python -m tests.fuzz --help`."""
