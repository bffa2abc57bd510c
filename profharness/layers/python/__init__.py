"""Layers around Python programs of any kind: what samples the interpreter's own stacks."""
