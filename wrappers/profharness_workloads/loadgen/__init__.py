"""The load generator: the worker that makes a server's load, and its parts."""
